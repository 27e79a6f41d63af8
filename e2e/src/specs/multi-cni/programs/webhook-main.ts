import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { json } from "node:stream/consumers";
import { answerLines } from "@fairlead/lab/support/script";

/**
 * An admission webhook: denies objects with the label `deny`, and admits all others. Says when it is asked how many
 * objects it has denied and admitted, and the addresses that it was called from.
 * Usage: webhook-main.ts CERTIFICATE KEY PORT
 */
const [, , certFile = "", keyFile = "", port = ""] = process.argv;

/** What is read of an AdmissionReview, which the API server itself has made. */
interface Review {
  readonly request: { readonly uid: string; readonly object: Labeled };
}

interface Labeled {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
}

let admitted = 0;
let denied = 0;
const from = new Set<string>();

const files = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
const server = createServer(files, async (incoming, response) => {
  from.add(incoming.socket.remoteAddress ?? "unknown");
  const { request }: Review = JSON.parse(JSON.stringify(await json(incoming)));
  const allowed = request.object.metadata.labels?.["deny"] === undefined;
  if (allowed) admitted++;
  else denied++;
  const status = allowed ? {} : { status: { code: 403, message: "it has the label deny" } };
  const review = { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview" };
  response
    .writeHead(200, { "content-type": "application/json" })
    .end(JSON.stringify({ ...review, response: { uid: request.uid, allowed, ...status } }));
});
server.listen(Number(port), () => answerLines(() => JSON.stringify({ admitted, denied, from: [...from] })));
