import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fieldsOf, itemsOf, stringOf, valueAt } from "@fairlead/base";
import type { ControlPlane } from "../../../control-plane/control-plane.ts";

/** What a pod sees at a path is elsewhere on this machine: nodes have no file systems of their own. */
type MovedPaths = readonly (readonly [path: string, folder: string])[];

const ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Every occurrence of the paths of a pod is the one where its files are. */
export function moved(text: string, paths: MovedPaths): string {
  return paths.reduce((before, [path, folder]) => before.replaceAll(path, folder), text);
}

/**
 * Writes what a pod's volumes hold, as its kubelet would: ConfigMaps, and its account's token. Folders of the host that
 * it writes to are the node's own.
 *
 * @returns where its paths are
 */
export async function podFiles(
  { api, ca }: Pick<ControlPlane, "api" | "ca">,
  pod: unknown,
  { own, ofNode }: { readonly own: string; readonly ofNode: string },
): Promise<MovedPaths> {
  const namespace = stringOf(valueAt(pod, "metadata", "namespace"));
  const account = stringOf(valueAt(pod, "spec", "serviceAccountName"));
  const paths: (readonly [string, string])[] = [];
  if (account !== undefined) {
    const folder = join(own, "account");
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
    const spec = { expirationSeconds: 7_200 };
    const made = await api.post(path, { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec });
    await writeAll(folder, { token: stringOf(valueAt(made, "status", "token")) ?? "", "ca.crt": ca });
    paths.push([ACCOUNT_FOLDER, folder]);
  }
  const volumes = new Map(
    itemsOf(valueAt(pod, "spec", "volumes")).map((one) => [fieldsOf(one)["name"], fieldsOf(one)]),
  );
  const containers = itemsOf(valueAt(pod, "spec", "containers"));
  for (const mount of containers.flatMap((one) => itemsOf(fieldsOf(one)["volumeMounts"])).map(fieldsOf)) {
    const volume = volumes.get(mount["name"]);
    const path = stringOf(mount["mountPath"]) ?? "";
    const name = stringOf(valueAt(volume, "configMap", "name"));
    const isWritten = mount["readOnly"] !== true && valueAt(volume, "hostPath", "type") === "DirectoryOrCreate";
    if (name !== undefined) {
      const map = await api.get(`/api/v1/namespaces/${namespace}/configmaps/${name}`);
      const folder = join(own, String(mount["name"]));
      await mkdir(folder, { recursive: true });
      paths.push([path, folder]);
      const data = Object.entries(fieldsOf(valueAt(map, "data")));
      await writeAll(folder, Object.fromEntries(data.map(([file, text]) => [file, moved(String(text), paths)])));
    } else if (isWritten) {
      const folder = join(ofNode, path);
      await mkdir(folder, { recursive: true });
      paths.push([path, folder]);
    }
  }
  return paths;
}

async function writeAll(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o600 });
}
