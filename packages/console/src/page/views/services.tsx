import { useEffect, useMemo, useState } from "preact/hooks";
import type { SearchAnswer, ServiceRow } from "../../protocol/index.ts";
import { ask } from "../ask.ts";
import { differingServices } from "../findings.ts";
import { Age } from "../parts/age.tsx";
import { RowList } from "../parts/row-list.tsx";
import { serviceColumns } from "../parts/service-columns.tsx";
import { ServiceTools } from "../parts/service-tools.tsx";
import { addressOf, replaceAddress } from "../router.ts";
import { emptyText, filtered, filterOf, namespacesOf, queryOf, type ServiceFilter } from "../service-filter.ts";
import type { Store } from "../store.ts";

/** Every service, as many as there are; what is shown of them stands in the page's address. */
export function ServicesView({ store, query }: { readonly store: Store; readonly query: URLSearchParams }) {
  const filter = filterOf(query);
  const { revision } = store;
  const found = useSearch(filter.q, store);
  const differing = useMemo(() => differingServices(store.nodes.values()), [revision]);
  const rows = useMemo(() => {
    const keys = found ?? store.keys;
    return filtered(
      keys.flatMap((key) => store.rows.get(key) ?? []),
      filter,
      differing,
    );
  }, [found, query.toString(), revision]);
  const namespaces = useMemo(() => namespacesOf(store.rows.values()), [revision]);
  const node = store.facts?.node ?? "";
  const kernels = store.facts?.kernels === true;
  useEffect(() => store.look(kernels ? [node] : []), [node, revision]);
  const change = (changed: Partial<ServiceFilter>) =>
    replaceAddress(addressOf("services", [], queryOf({ ...filter, ...changed })));
  return (
    <>
      <div class="head">
        <h1>Services</h1>
        <span class="quiet" role="status">
          {rows.length === store.rows.size ? `${rows.length}` : `${rows.length} of ${store.rows.size}`}
        </span>
        <Age source={`plan of ${node}`} at={store.objectsAt} />
      </div>
      <ServiceTools
        filter={filter}
        namespaces={namespaces}
        kernels={kernels}
        first={rows[0]?.service}
        onFilter={change}
      />
      {rows.length === 0 ? (
        <p class="empty">
          {emptyText(filter, store.rows.size)} {store.rows.size > 0 && <a href={addressOf("services")}>All services</a>}
        </p>
      ) : (
        <RowList
          label="Services"
          rows={rows}
          keyOf={({ service }) => service}
          isBad={({ service }) => differing.has(service)}
          columns={serviceColumns(differing)}
          order={filter}
          onOrder={change}
        />
      )}
    </>
  );
}

/** Undefined: nothing is searched for. */
function useSearch(text: string, store: Store): readonly ServiceRow["service"][] | undefined {
  const [found, setFound] = useState<SearchAnswer["services"] | undefined>();
  const { size } = store.rows;
  useEffect(() => {
    const stop = new AbortController();
    if (text.trim() === "") setFound(undefined);
    else {
      ask<SearchAnswer>(`api/search?q=${encodeURIComponent(text)}`, undefined, stop.signal).then((asked) => {
        if (asked.state === "answered") setFound(asked.answer.services);
      });
    }
    return () => stop.abort();
  }, [text, size, store.objectsAt]);
  return text.trim() === "" ? undefined : found;
}
