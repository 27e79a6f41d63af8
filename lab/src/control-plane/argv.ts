import { join } from "node:path";
import { familyOf } from "@fairlead/base";
import type { Argv } from "@fairlead/kernel";

/** Where etcd listens for clients, in the control plane's namespace. */
export const ETCD = "127.0.0.1:2379";
const ETCD_URL = `http://${ETCD}`;

export function etcdArgv(program: string, folder: string): Argv {
  return [
    program,
    `--data-dir=${join(folder, "etcd-data")}`,
    `--listen-client-urls=${ETCD_URL}`,
    `--advertise-client-urls=${ETCD_URL}`,
    "--listen-peer-urls=http://127.0.0.1:2380",
    // What is lost with the machine is not missed.
    "--unsafe-no-fsync",
    "--log-level=error",
  ];
}

export interface ApiServerFields {
  readonly folder: string;
  readonly address: string;
  readonly serviceCIDRs: readonly string[];
}

export function apiServerArgv(program: string, { folder, address, serviceCIDRs }: ApiServerFields): Argv {
  const file = (name: string) => join(folder, name);
  return [
    program,
    `--etcd-servers=${ETCD_URL}`,
    `--service-cluster-ip-range=${serviceCIDRs.join(",")}`,
    `--advertise-address=${address}`,
    `--bind-address=${familyOf(address) === "IPv6" ? "::" : "0.0.0.0"}`,
    "--secure-port=6443",
    `--cert-dir=${file("certs")}`,
    `--token-auth-file=${file("tokens.csv")}`,
    "--authorization-mode=RBAC",
    // As kubeadm has it: Fairlead's DaemonSet asks for it.
    "--allow-privileged=true",
    "--service-account-issuer=https://test-ground",
    `--service-account-key-file=${file("sa.pub")}`,
    `--service-account-signing-key-file=${file("sa.key")}`,
    // Pods without service accounts: nothing makes those here.
    "--disable-admission-plugins=ServiceAccount",
    // As OpenShift has it: who sets an owner that waits for the object needs a right to the owner.
    "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
    // Nothing resolves the nodes' names.
    "--kubelet-preferred-address-types=InternalIP",
    "--max-requests-inflight=2000",
    "--max-mutating-requests-inflight=1000",
  ];
}

/** The controllers that are named, and no other. */
export function controllerManagerArgv(program: string, kubeconfig: string, controllers: string): Argv {
  return [
    program,
    `--kubeconfig=${kubeconfig}`,
    `--controllers=${controllers}`,
    "--leader-elect=false",
    "--secure-port=0",
    "--use-service-account-credentials=false",
    "--endpoint-updates-batch-period=0s",
    "--endpointslice-updates-batch-period=0s",
    "--kube-api-qps=200",
    "--kube-api-burst=400",
  ];
}
