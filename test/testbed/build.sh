#!/usr/bin/env bash
# build.sh [--print] [PART]: builds programs from Go modules into a cache outside the checkout and prints the folder that
# holds them. What is there already is kept; --print only prints. Parts: kubernetes (the default: etcd, kube-apiserver,
# kubectl), node (beside them: kube-controller-manager, kube-scheduler, kubelet, kube-proxy, pause), conformance (the
# Gateway API suite and its echo server), services (ratelimit, redis, ext: what policies call), telemetry (an OpenTelemetry
# collector), metrics (a reader of expositions on Prometheus' own parser), protocols (h2spec and the client and server of
# gRPC's interoperability cases), inference (the reference endpoint picker of the Gateway API inference extension and its
# suite), spire (SPIRE's server and agent; needs a C compiler too), helm and python (an interpreter with packages of Python;
# needs python3 and pip in place of go). The cache of kubernetes and node is $GWPROXY_TESTBED, or a folder named after the
# versions under ~/.cache; the others are named after their sums. Needs: go, and some minutes the first time.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

version_of() { awk -v module="$2" '$1 == module || ($1 == "require" && $2 == module) { print $1 == "require" ? $3 : $2; exit }' "$here/$1/go.mod"; }
kubernetes=$(version_of k8s k8s.io/kubernetes)
etcd=$(version_of etcd go.etcd.io/etcd/server/v3)
sums=$(cat "$here"/{etcd,k8s}/go.{mod,sum} | openssl dgst -sha256 -r | cut -c1-8)
cache=${GWPROXY_TESTBED:-${XDG_CACHE_HOME:-$HOME/.cache}/gwproxy-testbed/kubernetes-$kubernetes-etcd-$etcd-$sums}
bin=$cache/bin

stamp=k8s.io/component-base/version
minor=${kubernetes#v1.}
kubernetes_flags="-s -w -X $stamp.gitVersion=$kubernetes -X $stamp.gitMajor=1 -X $stamp.gitMinor=${minor%%.*} \
-X $stamp.gitTreeState=clean -X $stamp.gitCommit=testbed -X $stamp.buildDate=2026-01-01T00:00:00Z"

build() { # NAME MODULE_FOLDER LINKER_FLAGS PACKAGE [GO_COMMAND]
  [ -x "$bin/$1" ] && return
  local began=$SECONDS unfinished="$bin/.$1.$$" compiler
  echo "testbed: building $1, this happens once ..." >&2
  # shellcheck disable=SC2086 # the command is of several words
  (cd "$here/$2" && CGO_ENABLED=$cgo exec go ${5:-build} -mod=readonly -ldflags "$3" -o "$unfinished" "$4") &
  compiler=$!
  while kill -0 "$compiler" 2>/dev/null; do
    sleep 1
    if (((SECONDS - began) % 30 == 0)); then echo "testbed: building $1, $((SECONDS - began)) s so far" >&2; fi
  done
  wait "$compiler"
  # Moved into place only when whole, so that an interrupted build is never taken for a finished one.
  mv "$unfinished" "$bin/$1"
  echo "testbed: built $1 in $((SECONDS - began)) s" >&2
}

install_packages() { # FOLDER_OF_REQUIREMENTS
  [ -x "$bin/python" ] && return
  local unfinished
  echo "testbed: installing packages of Python, this happens once ..." >&2
  unfinished=$(mktemp -d "${bin%/bin}.XXXXXX")
  python3 -m venv "$unfinished"
  "$unfinished/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
    --only-binary :all: --requirement "$1/requirements.txt" >&2
  # Moved into place only when whole; where another process was faster, its packages are the same.
  mv -T "$unfinished" "${bin%/bin}" 2>/dev/null || rm -r "$unfinished"
}

cgo=0
print_only=
[ "${1:-}" != --print ] || { print_only=1; shift; }
part=${1:-kubernetes}

if [[ " services telemetry metrics conformance protocols inference spire helm python " == *" $part "* ]]; then
  sums=$(find "$here/$part" -type f | LC_ALL=C sort | xargs cat | openssl dgst -sha256 -r | cut -c1-8)
  bin=${XDG_CACHE_HOME:-$HOME/.cache}/gwproxy-testbed/$part-$sums/bin
fi

if [ -z "$print_only" ]; then
  if [ "$part" = python ]; then mkdir -p "$(dirname "${bin%/bin}")"; else mkdir -p "$bin"; fi
  case $part in
    kubernetes)
      build etcd etcd "-s -w" go.etcd.io/etcd/server/v3
      build kube-apiserver k8s "$kubernetes_flags" k8s.io/kubernetes/cmd/kube-apiserver
      build kubectl k8s "$kubernetes_flags" k8s.io/kubernetes/cmd/kubectl
      ;;
    node)
      for program in kube-controller-manager kube-scheduler kubelet kube-proxy; do
        build "$program" k8s "$kubernetes_flags" "k8s.io/kubernetes/cmd/$program"
      done
      build pause k8s "-s -w" ./pause
      ;;
    conformance)
      build echo-basic conformance "-s -w" sigs.k8s.io/gateway-api/conformance/echo-basic
      build suite conformance "-s -w" . "test -c"
      ;;
    services)
      build ratelimit services "-s -w" github.com/envoyproxy/ratelimit/src/service_cmd
      build redis services "-s -w" ./redis
      build ext services "-s -w" ./ext
      ;;
    telemetry)
      build collector telemetry "-s -w" ./collector
      ;;
    metrics)
      build expositions metrics "-s -w" .
      ;;
    protocols)
      build h2spec protocols "-s -w" github.com/summerwind/h2spec/cmd/h2spec
      build grpc-client protocols "-s -w" google.golang.org/grpc/interop/client
      build grpc-server protocols "-s -w" google.golang.org/grpc/interop/server
      ;;
    inference)
      build epp inference "-s -w" sigs.k8s.io/gateway-api-inference-extension/cmd/epp
      build suite inference "-s -w" . "test -c"
      ;;
    spire)
      # The server keeps its entries in SQLite, which is C; one way to compile both shares what they share.
      cgo=1
      build spire-agent spire "-s -w" github.com/spiffe/spire/cmd/spire-agent
      build spire-server spire "-s -w" github.com/spiffe/spire/cmd/spire-server
      ;;
    helm)
      build helm helm "-s -w" helm.sh/helm/v4/cmd/helm
      ;;
    python)
      install_packages "$here/python"
      ;;
    *)
      echo "build.sh: unknown part $part; there are kubernetes, node, conformance, services, telemetry, metrics, protocols," \
        "inference, spire, helm and python" >&2
      exit 2
      ;;
  esac
fi
echo "$bin"
