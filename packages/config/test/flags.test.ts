import { describe, expect, test } from "vitest";
import { configOf, errorsOf, parse } from "./parse.ts";

const ADDRESS = "must be an IP address, such as 10.0.0.1 or fd00::1";
const CIDR = "must be a CIDR, such as 10.144.0.0/16 or fd00:144::/48";
const DURATION = "must be a duration with units, such as 30s, 1m30s or 1h0m0s";
const PORT = "must be an IP address and a port, such as 0.0.0.0:10256 or [::]:10256";
const INT32 = "must be a whole number";
const WINDOWS = "only works on Windows; remove it";

describe("flags", () => {
  test.each([
    [["--bind-address=node"], [`--bind-address=node: ${ADDRESS}`]],
    [["--bind-address=10.0.0.01"], [`--bind-address=10.0.0.01: ${ADDRESS}`]],
    [["--bind-address=fe80::1%eth0"], [`--bind-address=fe80::1%eth0: ${ADDRESS}`]],
    [["--healthz-bind-address=localhost:10256"], [`--healthz-bind-address=localhost:10256: ${PORT}`]],
    [["--healthz-bind-address=0.0.0.0:70000"], [`--healthz-bind-address=0.0.0.0:70000: ${PORT}`]],
    [["--healthz-bind-address=::1:10256x"], [`--healthz-bind-address=::1:10256x: ${PORT}`]],
    [
      ["--metrics-bind-address=127.0.0.1:0"],
      [
        "--metrics-bind-address=127.0.0.1:0: must be an IP address and a port from 1 to 65535, such as 0.0.0.0:10249 or [::]:10249",
      ],
    ],
    [["--metrics-port=0"], ["--metrics-port=0: the metrics server cannot be disabled; remove the flag"]],
    [
      ["--metrics-bind-address=192.0.2.1", "--metrics-port=70000"],
      ["--metrics-port=70000: must be a port from 1 to 65535"],
    ],
    [
      ["--proxy-mode=ipvs", "--feature-gates=KubeProxyIPVS=false"],
      ["--proxy-mode=ipvs: needs the feature gate KubeProxyIPVS=true"],
    ],
    [
      ["--logging-format=json", "--feature-gates=AllBeta=false"],
      ["--logging-format=json: needs the feature gate LoggingBetaOptions=true"],
    ],
    [["--oom-score-adj=2000"], ["--oom-score-adj=2000: must be a whole number from -1000 to 1000"]],
    [["--oom-score-adj=low"], [`--oom-score-adj=low: ${INT32}`]],
    [["--iptables-masquerade-bit=32"], ["--iptables-masquerade-bit=32: must be a whole number from 0 to 31"]],
    [["--iptables-masquerade-bit=1.5"], [`--iptables-masquerade-bit=1.5: ${INT32}`]],
    [["--conntrack-min=-1"], ["--conntrack-min=-1: must be a whole number from 0 to 2147483647"]],
    [
      ["--conntrack-max-per-core=3000000000"],
      ["--conntrack-max-per-core=3000000000: must be a whole number from 0 to 2147483647"],
    ],
    [
      ["--conntrack-udp-timeout=-5s"],
      ["--conntrack-udp-timeout=-5s: must not be negative; 0s keeps the kernel's setting"],
    ],
    [["--kube-api-qps=many"], ["--kube-api-qps=many: must be a number, such as 5 or 0.5"]],
    [["--kube-api-burst=-1"], ["--kube-api-burst=-1: must be a whole number from 0 to 2147483647"]],
    [["--config-sync-period=0"], ["--config-sync-period=0: must be greater than 0, such as 15m0s"]],
    [["--iptables-sync-period=30"], [`--iptables-sync-period=30: ${DURATION}`]],
    [["--iptables-sync-period=0s"], ["--iptables-sync-period=0s: must be greater than 0, such as 30s"]],
    [["--iptables-min-sync-period=-1s"], ["--iptables-min-sync-period=-1s: must not be negative"]],
    [
      ["--iptables-min-sync-period=2m"],
      ["--iptables-min-sync-period=2m: must not be longer than --iptables-sync-period, which is 30s"],
    ],
    [
      ["--proxy-mode=nftables", "--iptables-sync-period=1s", "--iptables-min-sync-period=5s"],
      ["--iptables-min-sync-period=5s: must not be longer than --iptables-sync-period, which is 1s"],
    ],
    [["--cluster-cidr=pods"], [`--cluster-cidr=pods: ${CIDR}`]],
    [["--cluster-cidr=10.144.0.0/16,10.145.0.0/33"], [`--cluster-cidr=10.145.0.0/33: ${CIDR}`]],
    [["--cluster-cidr=::ffff:10.144.0.0/112"], [`--cluster-cidr=::ffff:10.144.0.0/112: ${CIDR}`]],
    [
      ["--nodeport-addresses=public"],
      [`--nodeport-addresses=public: ${CIDR}, or one of the words primary, localhost, all`],
    ],
    [["--nodeport-addresses=all,all"], ["--nodeport-addresses=all: is listed twice"]],
    [
      ["--proxy-mode=IPVS"],
      ["--proxy-mode=IPVS: must be iptables, ipvs, nftables or userspace, or empty for iptables"],
    ],
    [
      ["--proxy-mode=kernelspace"],
      [
        "--proxy-mode=kernelspace: only works on Windows; must be iptables, ipvs, nftables or userspace, or empty for iptables",
      ],
    ],
    [
      ["--proxy-mode=ipvs", "--ipvs-scheduler=random"],
      ["--ipvs-scheduler=random: must be rr, wrr, lc, wlc, lblc, lblcr, sh, dh, sed, nq, mh, fo, ovf or twos"],
    ],
    [
      ["--proxy-mode=ipvs", "--ipvs-exclude-cidrs=1,2"],
      [`--ipvs-exclude-cidrs=1: ${CIDR}`, `--ipvs-exclude-cidrs=2: ${CIDR}`],
    ],
    [
      ["--proxy-mode=ipvs", "--ipvs-udp-timeout=-1s"],
      ["--ipvs-udp-timeout=-1s: must not be negative; 0s keeps the kernel's setting"],
    ],
    [
      ["--detect-local-mode=Bridge"],
      [
        "--detect-local-mode=Bridge: must be ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix, or empty for ClusterCIDR",
      ],
    ],
    [
      ["--detect-local-mode=BridgeInterface"],
      ["--detect-local-mode=BridgeInterface: BridgeInterface needs --pod-bridge-interface"],
    ],
    [
      ["--detect-local-mode=InterfaceNamePrefix", "--pod-interface-name-prefix=a b"],
      ["--pod-interface-name-prefix=a b: must be the name of a network interface: up to 15 letters, digits and _.@-"],
    ],
    [
      ["--detect-local-mode=BridgeInterface", "--pod-bridge-interface=averyveryverylongname"],
      [
        "--pod-bridge-interface=averyveryverylongname: must be the name of a network interface: up to 15 letters, digits and _.@-",
      ],
    ],
    [
      ["--hostname-override=$(NODE_NAME)"],
      [
        "--hostname-override=$(NODE_NAME): must be the name of a Node: letters, digits, dots and dashes, such as node-1.example",
      ],
    ],
    [
      ["--hostname-override= "],
      ["--hostname-override= : must be the name of a Node: letters, digits, dots and dashes, such as node-1.example"],
    ],
    [["--master=ftp://x"], ["--master=ftp://x: must be the URL of an API server, such as https://192.0.2.2:6443"]],
    [
      ["--feature-gates=AllAlpha"],
      ["--feature-gates=AllAlpha: must be name=true or name=false, several separated by commas"],
    ],
    [
      ["--feature-gates=AllAlpha=maybe"],
      ["--feature-gates=AllAlpha=maybe: must be name=true or name=false, several separated by commas"],
    ],
    [
      ["--show-hidden-metrics-for-version=1"],
      ["--show-hidden-metrics-for-version=1: must be <major>.<minor>, such as 1.36"],
    ],
    [["--masquerade-all=maybe"], ["--masquerade-all=maybe: must be true or false"]],
    [["-v=high"], ["--v=high: must be a whole number from 0 to 2147483647"]],
    [["--v=-1"], ["--v=-1: must be a whole number from 0 to 2147483647"]],
    [["--vmodule=watch"], ["--vmodule=watch: must be pattern=N, such as watch=5,apply=4"]],
    [
      ["--vmodule=watch=5", "--logging-format=json"],
      ['--vmodule=[{"filePattern":"watch","verbosity":5}]: is only valid with format text'],
    ],
    [["--logging-format=xml"], ["--logging-format=xml: must be text or json"]],
    [["--log-flush-frequency=-1s"], ["--log-flush-frequency=-1s: must be greater than 0, such as 5s"]],
    [["--log-json-split-stream"], ["--log-json-split-stream=true: needs the feature gate LoggingAlphaOptions=true"]],
    [
      ["--log-text-info-buffer-size=big"],
      ["--log-text-info-buffer-size=big: must be a number of bytes, such as 0, 512, 64K or 64Ki"],
    ],
    [["--mixed-services=some"], ["--mixed-services=some: must be own-endpoints, skip or all"]],
    [["--excluded-frontends=none"], ["--excluded-frontends=none: must be all, cluster-ip or excluded-clients"]],
    [["--ownership-annotation=no"], ["--ownership-annotation=no: must be true or false"]],
    [["--config=/nowhere"], ["--config=/nowhere: cannot be read: ENOENT: no such file or directory, open '/nowhere'"]],
    [
      ["--enable-dsr", "--source-vip=10.0.0.1"],
      [`--enable-dsr=true: ${WINDOWS}`, `--source-vip=10.0.0.1: ${WINDOWS}`],
    ],
  ] satisfies [string[], string[]][])("%j", (argv, errors) => {
    expect(errorsOf(parse(argv))).toEqual(errors);
  });

  test("all at once", () => {
    const argv = ["--bind-address=x", "--oom-score-adj=2000", "--proxy-mode=tcp", "--nodeport-addresses=x", "--v=x"];
    expect(errorsOf(parse(argv)).map((line) => line.split("=")[0])).toEqual([
      "--bind-address",
      "--v",
      "--proxy-mode",
      "--oom-score-adj",
      "--nodeport-addresses",
    ]);
  });
});

test("every flag has its value or its default, as kube-proxy shows them", () => {
  const given = ["--cluster-cidr=10.144.0.0/16", "--nodeport-addresses=primary,localhost", "--masquerade-all", "-v=2"];
  const { flags } = configOf(parse([...given, "--master=https://me:secret@192.0.2.1:6443"]));
  expect(flags).toMatchObject({
    "cluster-cidr": "10.144.0.0/16",
    "nodeport-addresses": "[primary,localhost]",
    "masquerade-all": "true",
    v: "2",
    master: "https://192.0.2.1:6443",
    "healthz-bind-address": "0.0.0.0:10256",
    "bind-address-hard-fail": "false",
    "iptables-sync-period": "30s",
    "exclude-cluster-cidr": "[]",
  });
  expect(flags).not.toHaveProperty("windows-service");
});
