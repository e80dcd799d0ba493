#!/usr/bin/env bash
# pit.sh DIRECTORY: a place with its own network, mounts, processes and control groups, for a Kubernetes node. Prints
# "ready"; then each line of its input is a command that is started in there. When the input ends, for whatever reason,
# everything in there is killed by the kernel, and the control groups and DIRECTORY are removed. Needs root, cgroup v1
# hierarchies below /sys/fs/cgroup, and the commands ip and unshare.
set -euo pipefail

NODE_ADDRESS=10.88.0.1
# Services, load balancers: what kube-proxy does not take is refused at once, as a closed port of the node is.
VIRTUAL="10.96.0.0/16 10.89.0.0/16"
# More than a small machine has: pods of tests ask for far more than they use, and have to run all the same.
PROCESSORS=32
CONTROLLERS="cpu cpuacct cpuset memory devices freezer blkio pids"

remove_groups() { # FILE that names them
  local group tries
  while read -r group; do
    # The kernel takes a moment to forget the processes that it killed.
    for tries in {1..40}; do
      [ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
    done
    [ ! -d "$group" ] || echo "pit.sh: $group could not be removed after $tries tries" >&2
  done <"$1"
}

# What a run left whose shell was killed as well.
remove_leftovers() {
  local left
  for left in "$(dirname "$directory")"/gwproxy-node-*; do
    [ -f "$left/groups" ] && ! kill -0 "$(cat "$left/owner")" 2>/dev/null || continue
    remove_groups "$left/groups"
    rm -rf "$left"
  done
}

enter() {
  local entry controller path group file
  while IFS= read -r entry; do
    IFS=: read -r _ controller path <<<"$entry"
    [ -n "$controller" ] || continue
    group=/sys/fs/cgroup/${controller#name=}${path%/}/$(basename "$directory")
    echo "$group" >>"$directory/groups"
    mkdir "$group"
    if [ "$controller" = cpuset ]; then
      for file in cpuset.cpus cpuset.mems; do cat "$(dirname "$group")/$file" >"$group/$file"; done
    fi
    echo "$BASHPID" >"$group/cgroup.procs"
  done </proc/self/cgroup
  exec unshare --net --mount --cgroup --pid --fork --mount-proc --kill-child=SIGKILL bash "$0" "$directory" inside
}

# What kubelet counts. They have no place in a core, so that it confines nothing to them. Pods see the real ones.
pretend_processors() {
  local number
  mount -t tmpfs tmpfs /sys/devices/system/node
  mount -t tmpfs tmpfs /sys/devices/system/cpu
  for ((number = 0; number < PROCESSORS; number++)); do mkdir "/sys/devices/system/cpu/cpu$number"; done
}

inside() {
  local controller range line
  mount --make-rshared /
  mount -t tmpfs tmpfs /run
  mount -t tmpfs tmpfs /sys/fs/cgroup
  for controller in $CONTROLLERS; do
    mkdir "/sys/fs/cgroup/$controller"
    mount -t cgroup -o "$controller" cgroup "/sys/fs/cgroup/$controller"
  done
  mkdir /sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
  pretend_processors
  # Kubelet and the network plugins insist on these two places.
  mkdir -p /var/lib/kubelet /var/lib/cni "$directory/kubelet" "$directory/cni-state"
  mount --bind "$directory/kubelet" /var/lib/kubelet
  mount --bind "$directory/cni-state" /var/lib/cni
  ip link set lo up
  ip addr add "$NODE_ADDRESS/32" dev lo
  for range in $VIRTUAL; do ip route add local "$range" dev lo src "$NODE_ADDRESS"; done
  sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.route_localnet=1
  echo ready
  while IFS= read -r line; do eval "$line" </dev/null & done
}

directory=$1
if [ "${2:-}" = inside ]; then
  inside
  exit
fi
[ "$(id -u)" = 0 ] || { echo "pit.sh: a node needs root; run this as root or in a virtual machine" >&2; exit 1; }
[ -d /sys/fs/cgroup/memory ] || { echo "pit.sh: a node needs cgroup v1 hierarchies below /sys/fs/cgroup" >&2; exit 1; }
remove_leftovers
echo $$ >"$directory/owner"
: >"$directory/groups"
enter <&0 &
echo "$!" >"$directory/process"
wait || true
remove_groups "$directory/groups"
rm -rf "$directory"
