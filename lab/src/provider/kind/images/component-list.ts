import { join } from "node:path";
import { TAGS } from "../../../../kind/versions.ts";
import type { ControlPlanePaths } from "../../../control-plane/programs.ts";
import type { ClusterPrograms } from "../programs.ts";

/** What images are made of. */
export interface PartSources {
  readonly kubernetes: string;
  readonly programs: ClusterPrograms & ControlPlanePaths;
  /** The first process of pods. */
  readonly pause: string;
  /** The folder of Kubernetes' module, for what agnhost takes from there alongside its program. */
  readonly moduleFolder: string;
}

/**
 * Paths in the image → files of this machine, or `->` and what a symbolic link says; or a root file system with the
 * tools that Kubernetes' specs want of their pods.
 */
export type ImagePart = "tools" | Readonly<Record<string, string>>;

export interface LocalImage {
  readonly names: readonly string[];
  readonly parts: readonly ImagePart[];
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
}

const REGISTRY = "registry.k8s.io";
const TESTS = `${REGISTRY}/e2e-test-images`;

/** Serves as every image of Fairlead's own specs: it does nothing. */
export const PAUSE_IMAGE = `${REGISTRY}/pause:${TAGS.pause}`;

/**
 * The images of a cluster, by the names that kubeadm and Kubernetes' specs know. Some stand in for others: all that the
 * specs of services want of those is a shell with dig and getent, or something that listens on port 80.
 */
export function componentImages({ kubernetes, programs, pause, moduleFolder }: PartSources): readonly LocalImage[] {
  const component = (name: keyof PartSources["programs"], ...under: readonly ImagePart[]): LocalImage => ({
    names: [`${REGISTRY}/${name}:${kubernetes}`],
    parts: [...under, { [`usr/local/bin/${name}`]: programs[name] }],
  });
  const porter = join(moduleFolder, "test/images/agnhost/porter");
  return [
    {
      names: [PAUSE_IMAGE, `${REGISTRY}/pause:3.10.1`, `${REGISTRY}/pause:3.10`],
      parts: [{ pause }],
      entrypoint: ["/pause"],
    },
    component("kube-apiserver"),
    component("kube-controller-manager"),
    component("kube-scheduler"),
    component("kube-proxy", "tools"),
    { ...component("etcd"), names: [`${REGISTRY}/etcd:${TAGS.etcd}`] },
    {
      names: [`${REGISTRY}/coredns/coredns:${TAGS.coredns}`],
      parts: [{ coredns: programs.coredns }],
      entrypoint: ["/coredns"],
    },
    {
      names: ["2.63.0", "2.55"].map((tag) => `${TESTS}/agnhost:${tag}`),
      parts: [
        "tools",
        {
          agnhost: programs.agnhost,
          "agnhost-2": "->agnhost",
          "localhost.crt": join(porter, "localhost.crt"),
          "localhost.key": join(porter, "localhost.key"),
        },
        { coredns: programs.coredns },
      ],
      entrypoint: ["/agnhost"],
      command: ["pause"],
    },
    {
      names: [
        ...["busybox:1.37.0-1", "busybox:1.36.1-1", "glibc-dns-testing:2.0.0"].map((name) => `${TESTS}/${name}`),
        `${REGISTRY}/build-image/distroless-iptables:v0.9.6`,
      ],
      parts: ["tools"],
      command: ["sh"],
    },
    {
      names: [`${TESTS}/regression-issue-74839:1.4`],
      parts: [{ "boom-server": programs["regression-issue-74839"] }],
      entrypoint: ["/boom-server"],
    },
    {
      names: ["1.15-4", "1.27-0"].map((tag) => `${TESTS}/nginx:${tag}`),
      parts: ["tools", { agnhost: programs.agnhost }],
      command: ["/agnhost", "test-webserver"],
    },
  ];
}
