module toolchain/language

go 1.23

require github.com/pulumi/pulumi/sdk/v3 v3.68.0
