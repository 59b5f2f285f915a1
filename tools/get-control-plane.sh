#!/usr/bin/env bash
#
# Downloads a Kubernetes control plane for the `kube` tests: etcd, kube-apiserver and kubectl as
# envtest publishes them (releases of kubernetes-sigs/controller-tools), kube-scheduler and
# kube-controller-manager of the same version from the Kubernetes project, which envtest leaves out.
# Every file is checked against its published digest. No network but a Debian mirror? Then
# tools/build-control-plane.sh.
#
#   tools/get-control-plane.sh OUTPUT_DIR [VERSION]
#   KUBEBUILDER_ASSETS=OUTPUT_DIR .venv/bin/pytest -m kube
#
# With Go at hand, the first half is also `setup-envtest use VERSION --bin-dir DIR -p path`, documented at
# https://github.com/kubernetes-sigs/controller-runtime/tree/main/tools/setup-envtest
set -euo pipefail

readonly DEFAULT_VERSION=1.36.2
readonly INDEX=https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml
readonly RELEASES=https://github.com/kubernetes-sigs/controller-tools/releases/download
readonly KUBERNETES=https://dl.k8s.io/release

say() { printf '%s\n' "get-control-plane: $*" >&2; }
die() { say "$*"; exit 1; }

usage() {
    say "usage: tools/get-control-plane.sh OUTPUT_DIR [VERSION]"
    exit 4
}

check_preconditions() {
    local tool missing=()
    for tool in curl tar find sha256sum sha512sum; do
        command -v "$tool" >/dev/null || missing+=("$tool")
    done
    ((${#missing[@]} == 0)) || die "missing: ${missing[*]}"
}

# The scheduler and the controller manager are published for linux alone.
find_platform() {
    [[ $(uname -s) == Linux ]] || die "$(uname -s): only linux has all four servers"
    case $(uname -m) in
        x86_64) ARCH=amd64 ;;
        aarch64 | arm64) ARCH=arm64 ;;
        *) die "$(uname -m): only amd64 and arm64 are published" ;;
    esac
}

get() {
    curl --fail --silent --show-error --location --proto '=https' --retry 3 --output "$2" "$1" || die "$1 could not be read"
}

get_envtest() {
    local archive="envtest-v$VERSION-linux-$ARCH.tar.gz" digest
    say "downloading $archive"
    get "$INDEX" "$WORK/index.yaml"
    # The digest stands on the line after the archive's name.
    digest=$(grep -A1 -F "$archive:" "$WORK/index.yaml" | sed -n 's/^ *hash: *//p') || true
    [[ -n $digest ]] || die "envtest has no $archive; versions are listed in $INDEX"
    get "$RELEASES/envtest-v$VERSION/$archive" "$WORK/$archive"
    (cd "$WORK" && sha512sum --check --quiet <<<"$digest  $archive") || die "$archive differs from its published digest"
    mkdir "$WORK/envtest"
    tar -xzf "$WORK/$archive" -C "$WORK/envtest"
    find "$WORK/envtest" -type f -exec mv -t "$WORK/bin" {} +
}

get_server() {
    say "downloading $1 $VERSION"
    get "$KUBERNETES/v$VERSION/bin/linux/$ARCH/$1" "$WORK/bin/$1"
    get "$KUBERNETES/v$VERSION/bin/linux/$ARCH/$1.sha256" "$WORK/$1.sha256"
    (cd "$WORK/bin" && sha256sum --check --quiet <<<"$(<"$WORK/$1.sha256")  $1") || die "$1 differs from its published digest"
}

[[ $# -ge 1 && $# -le 2 && $1 != -* ]] || usage
VERSION=${2:-$DEFAULT_VERSION}
VERSION=${VERSION#v}
check_preconditions
find_platform
mkdir -p "$1"
OUTPUT=$(realpath "$1")
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
mkdir "$WORK/bin"

get_envtest
get_server kube-scheduler
get_server kube-controller-manager
install -m 0755 "$WORK"/bin/* "$OUTPUT"
"$OUTPUT/kube-apiserver" --version >&2
say "done; KUBEBUILDER_ASSETS=$OUTPUT"
