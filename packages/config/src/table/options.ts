/** Flags that set no field of a document, a row each. */
import type { OptionRow } from "./row.ts";
import { flagTypes } from "./scalars.ts";

export const OPTIONS = {
  config: {
    group: "api",
    type: flagTypes.string,
    withConfig: true,
    help: "Path of a file with a KubeProxyConfiguration and, after ---, a FairleadConfiguration.",
    differs: "a second document, `FairleadConfiguration`, may follow after `---`; ignored flags are logged",
  },
  master: {
    group: "api",
    type: flagTypes.string,
    withConfig: true,
    help: "URL of the API server. Overrides the server of the kubeconfig.",
  },
  "allow-exec-credentials": {
    group: "api",
    type: flagTypes.boolean,
    withConfig: true,
    help: "Run the credential plugins that the kubeconfig names (users[].user.exec).",
    meaning: "`exec` of a kubeconfig",
  },
  "state-dir": {
    group: "networks",
    type: flagTypes.string,
    withConfig: true,
    default: "/run/fairlead",
    help: "Directory for state that outlives a restart, such as the owner of a service without endpoints. Empty: keep no state.",
    meaning: "what outlives a restart",
  },
  manifests: {
    group: "networks",
    type: flagTypes.string,
    withConfig: true,
    help: "File or directory of Kubernetes objects (YAML or JSON), watched for changes, instead of the API server.",
    meaning: "files (YAML or JSON) in place of the API server",
  },
  "userspace-only": {
    group: "userspace",
    type: flagTypes.boolean,
    withConfig: true,
    help: "Serve only on local ports, without rules and without root privileges, and print the ports.",
    meaning: "local ports in place of rules ([userspace.md](userspace.md))",
  },
  "healthz-port": {
    group: "served",
    type: flagTypes.int32,
    deprecated: "--healthz-bind-address",
    help: "Port of --healthz-bind-address if that has no port. 0 disables the health server.",
    note: "deprecated, as in kube-proxy",
  },
  "metrics-port": {
    group: "served",
    type: flagTypes.int32,
    deprecated: "--metrics-bind-address",
    help: "Port of --metrics-bind-address if that has no port.",
    note: "deprecated, as in kube-proxy",
  },
  cleanup: {
    group: "once",
    type: flagTypes.boolean,
    withConfig: true,
    help: "Remove all rules and other kernel objects of Fairlead and kube-proxy, and exit.",
    differs: "removes what Fairlead programmed, too; refused while an agent runs on the node",
  },
  "init-only": {
    group: "once",
    type: flagTypes.boolean,
    withConfig: true,
    help: "Do what needs full root privileges, and exit.",
  },
  "write-config-to": {
    group: "once",
    type: flagTypes.string,
    withConfig: true,
    help: "Write the configuration with its defaults to this file, and exit.",
  },
  version: {
    group: "once",
    type: flagTypes.version,
    withConfig: true,
    help: "Print the version, and exit.",
    differs: "prints Fairlead's version; `--version=raw` the release of kube-proxy that it follows",
  },
} as const satisfies Readonly<Record<string, OptionRow>>;
