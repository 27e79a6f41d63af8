import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseControllerArguments } from "@fairlead/config";
import { CommandError, createRunner } from "@fairlead/kernel";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { CLI_NAME, CONTROLLER_NAME } from "../src/image/layers.ts";
import { agentVersion, deployDir } from "../src/paths.ts";
import { agentConfig, only, parseManifests, toolOptions } from "../test/support/manifests.ts";

const runner = createRunner();
const API_SERVER = "apiServer=https://192.0.2.1:6443";

async function helm(...settings: readonly string[]): Promise<string> {
  const set = settings.flatMap((setting) => ["--set", setting]);
  const release = ["template", "fairlead", join(deployDir, "helm/fairlead"), "--namespace=kube-system"];
  return (await runner.run(["helm", ...release, "--kube-version=1.34.0", ...set])).stdout;
}

function agentOf(text: string) {
  const manifests = parseManifests(text);
  const [container] = only(manifests, "DaemonSet")["spec"].template.spec.containers;
  return { container, result: agentConfig(container, only(manifests, "ConfigMap"), "config") };
}

describe("the chart", () => {
  test("is hardened by default", async () => {
    const { container, result } = agentOf(await helm(API_SERVER));
    expect(result).toMatchObject({ kind: "run", warnings: [], config: { mode: "iptables" } });
    expect(container.securityContext.capabilities).toEqual({ drop: ["ALL"], add: ["NET_ADMIN", "NET_RAW"] });
    expect(agentOf(await helm(API_SERVER, "hardened=false")).container.securityContext).toEqual({ privileged: true });
  });

  test("secondary networks: the agent takes their slices only, and their controller is there", async () => {
    const settings = ["serviceProxyName=storage", "mode=nftables", "serviceNetwork=true"];
    const text = await helm(API_SERVER, ...settings);
    expect(agentOf(text).result).toMatchObject({
      kind: "run",
      warnings: [],
      config: { serviceProxyName: "storage", serviceNetwork: true },
    });
    const [{ command, args }] = only(parseManifests(text), "Deployment")["spec"].template.spec.containers;
    expect(command).toEqual([CONTROLLER_NAME]);
    expect(parseControllerArguments(args, "0")).toMatchObject({
      kind: "run",
      config: {
        serviceProxyName: "storage",
        election: { namespace: "kube-system", name: "fairlead-controller" },
        logging: { format: "text", verbosity: 1 },
      },
    });
    expect(parseManifests(await helm(API_SERVER)).filter(({ kind }) => kind === "Deployment")).toEqual([]);
  });

  test("Gateways: their controller is there with the role of that job only", async () => {
    const manifests = parseManifests(await helm(API_SERVER, "gateways=true"));
    const [{ args }] = only(manifests, "Deployment")["spec"].template.spec.containers;
    expect(parseControllerArguments(args, "0")).toMatchObject({ kind: "run", config: { jobs: ["gateways"] } });
    const roles = manifests.filter(({ kind, metadata }) => kind === "ClusterRole" && /:controller/.test(metadata.name));
    expect(roles.map(({ metadata }) => metadata.name)).toEqual(["fairlead:controller-gateways"]);
  });

  test("sources of networks come with a role for what they read, and no other", async () => {
    const roles = async (...settings: readonly string[]) =>
      parseManifests(await helm(API_SERVER, ...settings)).filter(
        ({ kind, metadata }) => kind === "ClusterRole" && metadata.name.endsWith(":networks"),
      );
    expect(await roles()).toEqual([]);
    const custom = ["source=custom", "resource=pools.v1.example.org", "fields={spec.cidr}"];
    const [role, ...others] = await roles(
      "multiCNI.clusterCIDRsFrom={calico-ippools}",
      ...custom.map((field) => `multiCNI.excludeCIDRsFrom[0].${field}`),
      "multiCNI.serviceRules[0].namespaceLabel=udn",
      "multiCNI.serviceRules[0].ownership=foreign",
    );
    const verbs = ["list", "watch"];
    expect(others).toEqual([]);
    expect(role?.["rules"]).toEqual([
      { apiGroups: ["example.org"], resources: ["pools"], verbs },
      { apiGroups: ["crd.projectcalico.org", "projectcalico.org"], resources: ["ippools"], verbs },
      { apiGroups: [""], resources: ["namespaces"], verbs },
    ]);
  });

  test("a changed configuration changes the pod template, and other changes do not", async () => {
    const parts = async (...settings: readonly string[]) => {
      const manifests = parseManifests(await helm(API_SERVER, ...settings));
      const { metadata, immutable } = only(manifests, "ConfigMap");
      const { volumes } = only(manifests, "DaemonSet")["spec"].template.spec;
      expect(immutable).toBe(true);
      expect(volumes).toContainEqual({ name: "config", configMap: { name: metadata.name } });
      return { name: metadata.name, template: only(manifests, "DaemonSet")["spec"].template };
    };
    const before = await parts();
    expect(before.name).toMatch(/^fairlead-[0-9a-f]{10}$/);
    for (const changed of ["apiServer=https://192.0.2.2:6443", "verbosity=4", "config.iptables.masqueradeAll=true"]) {
      const after = await parts(changed);
      expect(after.name).not.toBe(before.name);
      expect(after.template).not.toEqual(before.template);
    }
    expect(await parts("maxUnavailable=2")).toEqual(before);
  });

  test("flags, variables, a digest and an account of one's own", async () => {
    const digest = `sha256:${"0123456789abcdef".repeat(4)}`;
    const own = ["serviceAccount.create=false", "serviceAccount.name=mine", `image.digest=${digest}`];
    const extra = [
      "extraArgs={--mixed-services=skip}",
      "extraEnv[0].name=HTTPS_PROXY",
      "extraEnv[0].value=http://proxy",
    ];
    const text = await helm(API_SERVER, ...own, ...extra);
    const manifests = parseManifests(text);
    expect(manifests.map(({ kind }) => kind)).not.toContain("ServiceAccount");
    expect(only(manifests, "ClusterRoleBinding")["subjects"]).toMatchObject([{ name: "mine" }]);
    const { spec } = only(manifests, "DaemonSet")["spec"].template;
    expect(spec.serviceAccountName).toBe("mine");
    for (const container of [...spec.initContainers, ...spec.containers]) {
      expect(container.image).toBe(`ghcr.io/fairlead-dev/fairlead:${await agentVersion()}@${digest}`);
      expect(container.env).toContainEqual({ name: "HTTPS_PROXY", value: "http://proxy" });
      expect(container.env).toHaveLength(2);
      expect(container.args.at(-1)).toBe("--mixed-services=skip");
    }
    expect(agentOf(text).result).toMatchObject({ kind: "run", config: { multiCNI: { mixedServices: "skip" } } });
    const account = parseManifests(await helm(API_SERVER, "serviceAccount.name=x", "serviceAccount.annotations.a=b"));
    expect(only(account, "ServiceAccount").metadata).toMatchObject({ name: "x", annotations: { a: "b" } });
  });

  test("names, labels, volumes, probes and updates of one's own", async () => {
    const names = async (...settings: readonly string[]) =>
      parseManifests(await helm(API_SERVER, ...settings)).map(({ metadata }) => metadata.name);
    for (const name of await names("nameOverride=edge")) expect(name).toMatch(/^fairlead-edge\b/);
    for (const name of await names("fullnameOverride=proxy")) expect(name).toMatch(/^proxy\b/);
    const own = [
      "commonLabels.team=net",
      "extraVolumes[0].name=ca",
      "extraVolumes[0].hostPath.path=/etc/ca",
      "extraVolumeMounts[0].name=ca",
      "extraVolumeMounts[0].mountPath=/etc/ca",
      "livenessProbe.failureThreshold=9",
      "updateStrategy=OnDelete",
    ];
    const manifests = parseManifests(await helm(API_SERVER, ...own));
    for (const { metadata } of manifests.filter(({ metadata: { name } }) => !name.endsWith("-test"))) {
      expect(metadata).toMatchObject({ labels: { team: "net" } });
    }
    const { updateStrategy, selector, template } = only(manifests, "DaemonSet")["spec"];
    expect(updateStrategy).toEqual({ type: "OnDelete" });
    expect(selector.matchLabels).not.toHaveProperty("team");
    expect(template.metadata.labels).toMatchObject({ team: "net", "app.kubernetes.io/name": "fairlead" });
    const [container] = template.spec.containers;
    expect(container.volumeMounts).toContainEqual({ name: "ca", mountPath: "/etc/ca" });
    expect(template.spec.volumes).toContainEqual({ name: "ca", hostPath: { path: "/etc/ca" } });
    expect(container.livenessProbe).toEqual({
      httpGet: { path: "/livez", port: "healthz" },
      periodSeconds: 10,
      timeoutSeconds: 5,
      failureThreshold: 9,
    });
    const shadow = only(parseManifests(await helm(API_SERVER, ...own, "shadow=true")), "DaemonSet")["spec"];
    expect(shadow.updateStrategy).toEqual({ type: "OnDelete" });
    expect(shadow.template.spec.volumes).toContainEqual({ name: "ca", hostPath: { path: "/etc/ca" } });
    const { updateStrategy: rolling } = only(parseManifests(await helm(API_SERVER)), "DaemonSet")["spec"];
    expect(rolling).toEqual({ type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } });
  });

  test("helm lint without values says what is required, and nothing else", async () => {
    const { stdout, stderr } = await runner.run(["helm", "lint", join(deployDir, "helm/fairlead")]);
    expect(stdout).toContain("0 chart(s) failed");
    expect(stdout).not.toMatch(/\[(?:WARNING|ERROR|INFO)\]/);
    expect(stderr).toContain("apiServer is required");
  });

  test("carries every value into the configuration", async () => {
    const text = await helm(
      API_SERVER,
      "mode=ipvs",
      "clusterCIDRs={10.144.0.0/16,fd00:144::/48}",
      "multiCNI.excludeClusterCIDRs={10.244.0.0/16}",
      "multiCNI.mixedServices=skip",
      "config.ipvs.strictARP=true",
      "verbosity=4",
    );
    expect(agentOf(text).result).toMatchObject({
      kind: "run",
      warnings: [],
      config: {
        mode: "ipvs",
        clusterCIDRs: ["10.144.0.0/16", "fd00:144::/48"],
        ipvs: { strictARP: true },
        multiCNI: { excludeClusterCIDRs: ["10.244.0.0/16"], mixedServices: "skip" },
        logging: { verbosity: 4 },
      },
    });
  });

  test("brings alert rules and dashboard as they are", async () => {
    const settings = ["prometheusRule.enabled=true", "prometheusRule.labels.team=net", "dashboard.enabled=true"];
    const manifests = parseManifests(await helm(API_SERVER, ...settings));
    const file = (name: string) => readFile(join(deployDir, "helm/fairlead/monitoring", name), "utf8");
    const rule = only(manifests, "PrometheusRule");
    expect(rule["spec"]).toEqual(parse(await file("alerts.yaml")));
    expect(rule.metadata).toMatchObject({ labels: { team: "net" } });
    const dashboard = manifests.find(({ metadata }) => metadata.name === "fairlead-dashboard");
    expect(JSON.parse(dashboard?.["data"]["fairlead.json"])).toEqual(JSON.parse(await file("grafana-dashboard.json")));
    expect(parseManifests(await helm(API_SERVER)).map(({ kind }) => kind)).not.toContain("PrometheusRule");
  });

  test("a shadow runs alongside kube-proxy: nothing of the node's, no init container, ports of its own", async () => {
    const shadow = [API_SERVER, "shadow=true", "shadowGracePeriod=20s", "extraArgs={-v=2}"];
    const text = await helm(...shadow, "podMonitor.enabled=true", "metricsBindAddress=0.0.0.0:10249");
    const [container] = only(parseManifests(text), "DaemonSet")["spec"].template.spec.containers;
    const { command, options } = toolOptions(container);
    expect(command).toEqual([CLI_NAME, "verify"]);
    expect(options).toMatchObject({
      watch: true,
      config: "/etc/fairlead/config.conf",
      "grace-period": "20s",
      "agent-flag": ["v=2"],
    });
    expect(container.securityContext.capabilities).toEqual({ drop: ["ALL"], add: ["NET_ADMIN", "NET_RAW"] });
    expect(container.ports).toEqual([{ name: "metrics", containerPort: 10_449, hostPort: 10_449, protocol: "TCP" }]);
    const { metadata, spec } = only(parseManifests(text), "DaemonSet")["spec"].template;
    expect(spec.initContainers).toBeUndefined();
    expect(spec.volumes.map(({ name }: { name: string }) => name)).toEqual(["config"]);
    const proxy = only(parseManifests(await helm(API_SERVER)), "DaemonSet");
    expect(only(parseManifests(text), "DaemonSet").metadata.name).not.toBe(proxy.metadata.name);
    expect(metadata.labels).not.toMatchObject(proxy["spec"].selector.matchLabels);
    expect(only(parseManifests(text), "PodMonitor")["spec"].selector.matchLabels).toEqual(
      only(parseManifests(text), "DaemonSet")["spec"].selector.matchLabels,
    );
  });

  test("an instance alongside the first proxy has a label, ports and a configuration of its own", async () => {
    const named = [API_SERVER, "serviceProxyName=edge", "mode=nftables"];
    const { container, result } = agentOf(await helm(...named));
    expect(result).toMatchObject({
      kind: "run",
      warnings: [],
      config: { serviceProxyName: "edge", metricsBindAddress: { port: 10_349 }, healthzBindAddress: { port: 10_356 } },
    });
    expect(container.ports).toEqual([{ name: "healthz", containerPort: 10_356, hostPort: 10_356, protocol: "TCP" }]);
    const { template } = only(parseManifests(await helm(...named)), "DaemonSet")["spec"];
    expect(template.metadata.labels).toMatchObject({ "fairlead.dev/service-proxy-name": "edge" });
    const third = agentOf(await helm(...named, "healthzPort=10456"));
    expect(third.container.ports[0].containerPort).toBe(10_456);
    expect(third.result).toMatchObject({ config: { healthzBindAddress: { port: 10_456 } } });
  });

  test.each([
    ["a shadow of what has no rules to see", [API_SERVER, "shadow=true", "mode=userspace"], /mode is userspace/],
    [
      "an instance in a mode that cannot run alongside another proxy",
      [API_SERVER, "serviceProxyName=edge"],
      /nftables mode/,
    ],
    [
      "an instance as a shadow",
      [API_SERVER, "serviceProxyName=edge", "mode=nftables", "shadow=true"],
      /leave one of them out/,
    ],
    ["no API server", [], /apiServer/],
    ["a field of its own in config", [API_SERVER, "config.mode=ipvs"], /config/],
    ["an unknown value", [API_SERVER, "clusterCidr=10.0.0.0/8"], /clusterCidr/],
    ["an invalid CIDR", [API_SERVER, "clusterCIDRs={10.144.0.0/33}"], /clusterCIDRs/],
    ["a flag that the agent does not have", [API_SERVER, "extraArgs={--nope=1}"], /extraArgs/],
    ["a field in another case", [API_SERVER, "config.iptables.masqueradeall=true"], /masqueradeall/],
    ["a label that is the chart's", [API_SERVER, "commonLabels.helm\\.sh/chart=mine"], /commonLabels/],
    ["an update strategy that there is not", [API_SERVER, "updateStrategy=Recreate"], /updateStrategy/],
    ["an invalid digest", [API_SERVER, "image.digest=latest"], /digest/],
    ["secondary networks without a name", [API_SERVER, "mode=nftables", "serviceNetwork=true"], /set serviceProxyName/],
    ["an argument that is not a flag", [API_SERVER, "extraArgs={cleanup}"], /extraArgs/],
    ["an account of no name", [API_SERVER, "serviceAccount.create=false"], /serviceAccount\.name is required/],
    ["a PodMonitor that reaches nothing", [API_SERVER, "podMonitor.enabled=true"], /0\.0\.0\.0:10249/],
  ])("refuses %s", async (_what, settings, message) => {
    const error = await helm(...settings).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(CommandError);
    expect(String(error)).toMatch(message);
  });
});

describe.each([
  "base",
  "overlays/instance",
  "overlays/iptables",
  "overlays/ipvs",
  "overlays/multi-cni",
  "overlays/privileged",
])("%s", (folder) => {
  test("kustomize builds it, and the agent takes what comes out", async () => {
    const { stdout } = await runner.run(["kustomize", "build", join(deployDir, folder)]);
    expect(agentOf(stdout).result).toMatchObject({ kind: "run", warnings: [] });
  });
});
