# shellcheck shell=sh
# /etc/profile of the guest, which its shell reads before the first prompt: each disk with a file system is mounted on
# /mnt/<serial of the disk>; ci/boot makes the serial of the name of the disk's file.
PS1='\w # '
dmesg -n 1	# each file system says of each disk that it is not its own
for disk in /sys/block/vd*; do
	[ -e "$disk/serial" ] || continue
	dev=/dev/${disk##*/} name=$(cat "$disk/serial")
	mkdir -p "/mnt/$name"
	if mount "$dev" "/mnt/$name" 2>/dev/null; then
		echo "/mnt/$name is $dev"
	else
		rmdir "/mnt/$name"
		echo "$dev is $name, without a file system"
	fi
done
dmesg -n 7
echo 'exit powers the guest off'
