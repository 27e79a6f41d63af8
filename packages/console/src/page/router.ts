import { useEffect, useState } from "preact/hooks";

export interface Route {
  /** `services`, `service` */
  readonly page: string;
  /** What follows the page's name: of a service its namespace and name. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [page = "", ...rest] = path.split("/").map(decodeURIComponent);
  return { page: page === "" ? "overview" : page, path: rest, query: new URLSearchParams(query) };
}

export function addressOf(
  page: string,
  path: readonly string[] = [],
  query: Readonly<Record<string, string>> = {},
): string {
  const words = [page, ...path].map(encodeURIComponent).join("/");
  const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString();
  return `#/${words}${given === "" ? "" : `?${given}`}`;
}

/** Where a service has its page. */
export function serviceAddress(key: string): string {
  const slash = key.indexOf("/");
  return addressOf("service", [key.slice(0, slash), key.slice(slash + 1)]);
}

export function go(address: string): void {
  location.hash = address;
}

/** The same page, shown differently: going back does not come by here. */
export function replaceAddress(address: string): void {
  history.replaceState(undefined, "", address);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const take = () => setHash(location.hash);
    addEventListener("hashchange", take);
    return () => removeEventListener("hashchange", take);
  }, []);
  return parseRoute(hash);
}
