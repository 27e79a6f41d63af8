import { readFileSync } from "node:fs";
import type { GoModule, GoProgram } from "../src/control-plane/programs.ts";

/**
 * What kind clusters are made of, each with its version. All of it comes from Go's module proxy, but for Debian's
 * packages.
 */
const KIND: GoModule = { path: "sigs.k8s.io/kind", version: "v0.33.0" };
const CONTAINERD: GoModule = { path: "github.com/containerd/containerd/v2", version: "v2.4.2" };
const CNI_PLUGINS: GoModule = { path: "github.com/containernetworking/plugins", version: "v1.9.1" };
const COREDNS: GoModule = { path: "github.com/coredns/coredns", version: "v1.14.2" };
/** As Kubernetes' own go.mod has it: it runs Kubernetes' specs. */
const GINKGO: GoModule = { path: "github.com/onsi/ginkgo/v2", version: "v2.28.1" };
const FLANNEL: GoModule = {
  path: "github.com/flannel-io/flannel",
  version: "v0.28.4",
  replaced: { "github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common": "v1.3.78" },
};
/**
 * Of frr-k8s the module proxy does not serve the version that MetalLB names. The one before it lacks a field, which
 * only MetalLB's mode of that name writes: it is added.
 */
const METALLB: GoModule = {
  path: "go.universe.tf/metallb",
  version: "v0.16.2",
  amended: {
    path: "github.com/metallb/frr-k8s",
    version: "v0.0.26",
    file: "api/v1beta1/frrconfiguration_types.go",
    before: "type Advertise struct {\n",
    after: `type AsPathPrependPrefixes struct {
\tPrefixes      []string
\tAsPathPrepend uint8
}

type Advertise struct {
\tPrefixesWithAsPathPrepend []AsPathPrependPrefixes
`,
  },
};
/** Its CRDs and its conformance suite are two modules of one version. The newest that this Go can build. */
const GATEWAY_API = { path: "sigs.k8s.io/gateway-api", version: "v1.6.3" } as const satisfies GoModule;
const GATEWAY_SUITE: GoModule = {
  path: `${GATEWAY_API.path}/conformance`,
  version: GATEWAY_API.version,
  replaced: { [GATEWAY_API.path]: GATEWAY_API.version },
};
/** The last one with flannel's plugin; the module that has it since is unavailable. */
const FLANNEL_PLUGIN: GoModule = { path: CNI_PLUGINS.path, version: "v0.9.1" };

/** Tags that kubeadm of this Kubernetes asks for (cmd/kubeadm/app/constants). What bears them is made here. */
export const TAGS = { pause: "3.10.2", etcd: "3.6.8-0", coredns: COREDNS.version } as const;

type Programs<Name extends string> = Readonly<Record<Name, Omit<GoProgram, "name">>>;

const plugin = (path: string) => ({ package: `${CNI_PLUGINS.path}/plugins/${path}`, module: CNI_PLUGINS });
const runtime = (name: string) => ({ package: `${CONTAINERD.path}/cmd/${name}`, module: CONTAINERD });
const kubernetes = (path: string) => ({ package: `k8s.io/kubernetes/${path}` });

/** Alongside the control plane's: what nodes and their images hold, and kind itself. */
export const clusterPrograms = {
  kind: { package: KIND.path, module: KIND },
  containerd: runtime("containerd"),
  "containerd-shim-runc-v2": runtime("containerd-shim-runc-v2"),
  ctr: runtime("ctr"),
  bridge: plugin("main/bridge"),
  ptp: plugin("main/ptp"),
  loopback: plugin("main/loopback"),
  "host-local": plugin("ipam/host-local"),
  portmap: plugin("meta/portmap"),
  coredns: { package: COREDNS.path, module: COREDNS },
  kubelet: kubernetes("cmd/kubelet"),
  kubeadm: kubernetes("cmd/kubeadm"),
  kubectl: kubernetes("cmd/kubectl"),
  "kube-scheduler": kubernetes("cmd/kube-scheduler"),
  "kube-proxy": kubernetes("cmd/kube-proxy"),
  agnhost: kubernetes("test/images/agnhost"),
  "regression-issue-74839": kubernetes("test/images/regression-issue-74839"),
} as const satisfies Programs<string>;

/** Kubernetes' own specs, and what runs them. */
export const suitePrograms = {
  ginkgo: { package: `${GINKGO.path}/ginkgo`, module: GINKGO },
  "e2e.test": { ...kubernetes("test/e2e"), test: true },
} as const satisfies Programs<string>;

/** What published images do not bring. */
export const publishedPrograms = {
  kind: clusterPrograms.kind,
  bridge: clusterPrograms.bridge,
  kubectl: clusterPrograms.kubectl,
} as const satisfies Programs<string>;

/** flannel's daemon and its CNI plugin. */
export const FLANNEL_PROGRAMS = {
  flanneld: { package: FLANNEL.path, module: FLANNEL, cgo: true },
  flannel: { package: `${FLANNEL_PLUGIN.path}/plugins/meta/flannel`, module: FLANNEL_PLUGIN },
} as const satisfies Programs<string>;

export const METALLB_TAG = METALLB.version;

/** MetalLB's two programs, by the names that its manifest has for their images. */
export const METALLB_PROGRAMS = {
  controller: { package: `${METALLB.path}/controller`, module: METALLB },
  speaker: { package: `${METALLB.path}/speaker`, module: METALLB },
} as const satisfies Programs<string>;

/** Tags of `echo-basic` in the suite's manifests: all are its one program here. CoreDNS is another version. */
export const ECHO_TAGS: readonly string[] = ["v1.5.1", "v1.6.0-dev.2", "v1.6.0-dev.3"];
export const COREDNS_FOR_GATEWAYS = "registry.k8s.io/coredns/coredns:v1.12.2";

/** The Gateway API's conformance suite, with the options of a layer-4 implementation, and the program of its pods. */
export const GATEWAY_PROGRAMS = {
  "echo-basic": { package: `${GATEWAY_SUITE.path}/echo-basic`, module: GATEWAY_SUITE },
  "gateways.test": {
    package: ".",
    module: GATEWAY_SUITE,
    test: true,
    source: readFileSync(new URL("./gateways_test.go", import.meta.url), "utf8"),
  },
} as const satisfies Programs<string>;

/** Manifests that modules hold: a file, or a folder. */
export const MODULE_MANIFESTS = {
  metallb: { module: METALLB, path: "config/manifests/metallb-native.yaml" },
  gatewayAPI: { module: GATEWAY_API, path: "config/crd/standard" },
} as const satisfies Readonly<Record<string, { module: GoModule; path: string }>>;

/** Debian packages of a node's root file system. */
export const nodePackages: readonly string[] = [
  ...["systemd", "dbus", "libseccomp2", "runc", "mount", "util-linux", "procps", "e2fsprogs", "kmod", "jq"],
  ...["iproute2", "iptables", "nftables", "ipset", "ipvsadm", "conntrack", "ethtool", "socat", "netbase"],
  ...["curl", "ca-certificates", "iputils-ping", "tcpdump", "bind9-host"],
];

/** Under kube-proxy, and what Kubernetes' specs want of their pods: a shell, dig, curl. */
export const toolPackages: readonly string[] = [
  ...["iptables", "nftables", "ipset", "conntrack", "kmod", "iproute2", "procps"],
  ...["curl", "wget", "netcat-openbsd", "bind9-dnsutils", "iputils-ping", "tcpdump", "ca-certificates"],
];

/**
 * Where registries and release pages can be reached: the nodes' image. kind itself and the CNI plugin `bridge`, which
 * its nodes lack, are those of above.
 *
 * @param kubernetes full, `v1.36.4`; kind publishes not every one
 */
export function nodeImage(kubernetes: string): string {
  return `kindest/node:${kubernetes}`;
}

const GITHUB = "https://raw.githubusercontent.com";
const KUBE_OVN = "v1.16.0";

/** A pod network's own manifest, or the script that applies it. */
export const MANIFESTS = {
  flannel: `${GITHUB}/flannel-io/flannel/v0.28.4/Documentation/kube-flannel.yml`,
  calico: `${GITHUB}/projectcalico/calico/v3.32.2/manifests/calico.yaml`,
  ovn: `${GITHUB}/kubeovn/kube-ovn/refs/tags/${KUBE_OVN}/dist/images/install.sh`,
} as const;

/** kube-ovn's script has the name in parts. */
export const KUBE_OVN_IMAGES: readonly string[] = [`docker.io/kubeovn/kube-ovn:${KUBE_OVN}`];
