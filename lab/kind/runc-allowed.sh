#!/bin/bash
# Stands between containerd and runc. kind's nodes ask for every capability that the kernel knows; where root itself lacks some
# (CAP_SYS_RESOURCE in many virtual machines), runc refuses them all. What cannot be given is taken out of the request.
names=(chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap linux_immutable
  net_bind_service net_broadcast net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio sys_chroot
  sys_ptrace sys_pacct sys_admin sys_boot sys_nice sys_resource sys_time sys_tty_config mknod lease
  audit_write audit_control setfcap mac_override mac_admin syslog wake_alarm block_suspend audit_read
  perfmon bpf checkpoint_restore)
bounding=$((16#$(sed -n 's/^CapBnd:\t*//p' /proc/self/status)))
absent=
for bit in "${!names[@]}"; do
  (( bounding >> bit & 1 )) || absent+=",\"CAP_$(tr a-z A-Z <<<"${names[bit]}")\""
done

# `create` has a bundle with config.json, `exec` a file with only the process.
previous='' file='' place=''
for argument in "$@"; do
  case $previous in
    --bundle | -b) file=$argument/config.json place=.process.capabilities ;;
    --process | -p) file=$argument place=.capabilities ;;
  esac
  previous=$argument
done
if [ -n "$absent" ] && [ -s "$file" ]; then
  allowed=$(jq -c "if $place then $place |= map_values(if . then . - [${absent#,}] else . end) else . end" "$file") &&
    printf '%s\n' "$allowed" >"$file"
fi
exec runc "$@"
