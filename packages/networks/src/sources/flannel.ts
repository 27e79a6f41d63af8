import { fieldsOf, stringOf } from "@fairlead/base";
import { ReadingBuilder } from "./reading.ts";
import type { SourceKind } from "./source.ts";

/** flannel's configuration, a JSON text in its ConfigMap. flannel: pkg/subnet/config.go. */
export const flannel: SourceKind = {
  resources: [
    {
      group: "",
      version: "v1",
      plural: "configmaps",
      kind: "ConfigMap",
      namespaced: true,
      only: { namespace: "kube-flannel", name: "kube-flannel-cfg" },
    },
  ],
  read(raw) {
    const reading = new ReadingBuilder();
    const written = fieldsOf(fieldsOf(raw)["data"])["net-conf.json"];
    try {
      const config = fieldsOf(JSON.parse(stringOf(written) ?? ""));
      reading.add("net-conf.json: Network", config["Network"]);
      reading.add("net-conf.json: IPv6Network", config["IPv6Network"]);
    } catch {
      reading.problem("data.net-conf.json", written, 'must be JSON such as {"Network":"10.244.0.0/16"}');
    }
    return reading.done();
  },
};
