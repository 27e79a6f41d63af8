/** computenetwork.dll and vmcompute.dll of this machine. */

import type Koffi from "koffi";
import { loadKoffi } from "../netlink/listening.ts";
import { HcnError, type HcnHandle, type HcnKind, type HcnLibrary } from "./hcn.ts";

/**
 * Opens Windows' own libraries. Calls run on threads of their own: HNS takes its time, and probes of the node are
 * answered meanwhile.
 *
 * @throws NativeCodeError when there is no compiled code for this machine; Error where Windows has no HCN
 */
export async function openHcnLibrary(): Promise<HcnLibrary> {
  const koffi = await loadKoffi();
  const functions = declare(koffi);
  const call = caller(functions);
  return {
    async enumerate(kind, query) {
      const ids: Out<string> = [null];
      await call(`HcnEnumerate${kind}s`, [query, ids], true);
      return ids[0] ?? "[]";
    },
    async open(kind, id) {
      const handle: Out<HcnHandle> = [null];
      await call(`HcnOpen${kind}`, [guidOf(id), handle], true);
      return handle[0];
    },
    async properties(kind, handle, query) {
      const properties: Out<string> = [null];
      await call(`HcnQuery${kind}Properties`, [handle, query, properties], true);
      return properties[0] ?? "{}";
    },
    close: (kind, handle) => call(`HcnClose${kind}`, [handle], false),
    async createEndpoint(network, settings) {
      const [id, handle] = [guidOf(NEW), [null] as Out<HcnHandle>];
      await call("HcnCreateEndpoint", [network, id, settings, handle], true);
      return { id: guidText(id), handle: handle[0] };
    },
    async createLoadBalancer(settings) {
      const [id, handle] = [guidOf(NEW), [null] as Out<HcnHandle>];
      await call("HcnCreateLoadBalancer", [id, settings, handle], true);
      return { id: guidText(id), handle: handle[0] };
    },
    modifyLoadBalancer: (handle, settings) => call("HcnModifyLoadBalancer", [handle, settings], true),
    delete: (kind, id) => call(`HcnDelete${kind}`, [guidOf(id)], true),
    async hnsCall(method, path, body) {
      const response: Out<string> = [null];
      await call("HNSCall", [method, path, body, response], false);
      return response[0] ?? "{}";
    },
  };
}

type KoffiFunction = ReturnType<ReturnType<typeof Koffi.load>["func"]>;

/** A place for what a function gives back. */
type Out<T> = [T | null];

/** GUID of guiddef.h. */
interface Guid {
  readonly a: number;
  readonly b: number;
  readonly c: number;
  readonly d: readonly number[];
}

/** HCN gives the new object an id of its own. */
const NEW = "00000000-0000-0000-0000-000000000000";

/** @throws RangeError where it is no GUID */
export function guidOf(text: string): Guid {
  const [, a = "", b = "", c = "", d = "", e = ""] = GUID.exec(text) ?? [];
  if (a === "") throw new RangeError(`${JSON.stringify(text)} is no GUID`);
  const [one, two, three] = [a, b, c].map((digits) => Number.parseInt(digits, 16));
  return { a: one ?? 0, b: two ?? 0, c: three ?? 0, d: [...Buffer.from(d + e, "hex")] };
}

export function guidText({ a, b, c, d }: Guid): string {
  const hex = (value: number, digits: number) => value.toString(16).padStart(digits, "0");
  const rest = Buffer.from(d).toString("hex");
  return [hex(a, 8), hex(b, 4), hex(c, 4), rest.slice(0, 4), rest.slice(4)].join("-");
}

const GUID = /^\{?([\da-f]{8})-([\da-f]{4})-([\da-f]{4})-([\da-f]{4})-([\da-f]{12})\}?$/i;

const KINDS: readonly HcnKind[] = ["Network", "Endpoint", "LoadBalancer"];

/** The functions by name. What they say of an error (the last parameter) is JSON as well, and ours to free. */
function declare(koffi: typeof Koffi): ReadonlyMap<string, KoffiFunction> {
  const network = koffi.load("computenetwork.dll");
  const freeing = koffi.load("ole32.dll").func("void __stdcall CoTaskMemFree(void *text)");
  koffi.disposable("HcnText", "str16", freeing);
  koffi.struct("HcnGuid", { a: "uint32", b: "uint16", c: "uint16", d: koffi.array("uint8", 8, "Array") });
  const error = "_Out_ HcnText *error";
  const created = `_Inout_ HcnGuid *id, str16 settings, _Out_ void **handle, ${error}`;
  const parameters: Readonly<Record<string, string>> = {
    ...Object.fromEntries(
      KINDS.flatMap((kind) => [
        [`HcnEnumerate${kind}s`, `str16 query, _Out_ HcnText *ids, ${error}`],
        [`HcnOpen${kind}`, `HcnGuid *id, _Out_ void **handle, ${error}`],
        [`HcnQuery${kind}Properties`, `void *handle, str16 query, _Out_ HcnText *properties, ${error}`],
        [`HcnClose${kind}`, "void *handle"],
        [`HcnDelete${kind}`, `HcnGuid *id, ${error}`],
      ]),
    ),
    HcnCreateEndpoint: `void *network, ${created}`,
    HcnCreateLoadBalancer: created,
    HcnModifyLoadBalancer: `void *handle, str16 settings, ${error}`,
  };
  const functions = new Map<string, KoffiFunction>(
    Object.entries(parameters).map(([name, list]) => [name, network.func(`int32 __stdcall ${name}(${list})`)]),
  );
  const hns = koffi.load("vmcompute.dll");
  const text = "str16 method, str16 path, str16 body, _Out_ HcnText *response";
  return functions.set("HNSCall", hns.func(`int32 __stdcall HNSCall(${text})`));
}

/** @returns calls a function on another thread; its last parameter may be what it says of an error */
function caller(functions: ReadonlyMap<string, KoffiFunction>) {
  return async (name: string, parameters: readonly unknown[], explains: boolean): Promise<void> => {
    const error: Out<string> = [null];
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const all = explains ? [...parameters, error] : parameters;
    functions.get(name)?.async(...all, (failure: unknown, result: number) => {
      if (failure) reject(failure);
      else resolve(result);
    });
    const result = await promise;
    if (result < 0) throw new HcnError(name, result, detailOf(error[0]));
  };
}

/** `{"Error":"…","ErrorCode":…,"Success":false}` */
function detailOf(text: string | null): string {
  if (text === null || text === "") return "";
  try {
    const { Error: detail } = JSON.parse(text) as { readonly Error?: unknown };
    return typeof detail === "string" ? detail : text;
  } catch {
    return text;
  }
}
