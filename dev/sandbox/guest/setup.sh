# Turns a plain Debian root into a GPU server to practise on; runs in it, once, when it is made.
here=/usr/lib/practice

cp -r "$here/files/." /
chmod 0440 /etc/sudoers.d/*

# sshd: keys only, no variables from the client, a host key that each host brings itself
rm -f /etc/ssh/ssh_host_*
sed -i '/^AcceptEnv/d; /^UsePAM/d' /etc/ssh/sshd_config
useradd --create-home --gid operator --shell /bin/bash operator

# what a person finds on a GPU server
for program in nvidia-smi gpu-hold; do
    install -m 0755 "$here/programs/$(echo $program | tr - _).py" "/usr/bin/$program"
done
for engine in vllm sglang; do
    mkdir -p "/opt/$engine/bin"
    ln -s /usr/bin/python3 "/opt/$engine/bin/python3"
    printf 'home = /usr/bin\ninclude-system-site-packages = true\n' >"/opt/$engine/pyvenv.cfg"
    packages=$("/opt/$engine/bin/python3" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    mkdir -p "$packages"
    mv "$here/engines/$engine" "$packages/$engine"
    # The files that a real box has patched, under the path that its newer Python gives them.
    cp -r "$here/patches/$engine/." "$packages/"
    ln -s "$(basename "$(dirname "$packages")")" "/opt/$engine/lib/python3.12"
    echo "$here" >"$packages/practice.pth"
done
python3 -m compileall -q "$here" /opt/*/lib

# Debian's own, which is empty, would come before that of an engine.
rm -f /usr/lib/python3*/sitecustomize.py

mkdir -p /var/log/journal
systemctl enable practice-gpus.service ssh.service
systemctl mask getty.target console-getty.service getty@.service container-getty@.service \
    systemd-logind.service systemd-networkd.service systemd-resolved.service \
    systemd-timesyncd.service systemd-update-utmp.service systemd-firstboot.service \
    systemd-tmpfiles-clean.timer apt-daily.timer apt-daily-upgrade.timer fstrim.timer \
    dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service
