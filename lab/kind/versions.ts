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
/** The last one with flannel's plugin; the module that has it since is not to be had. */
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
