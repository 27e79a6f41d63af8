/** Kubernetes' own encoding of its own kinds; custom resources have none. */
export const PROTOBUF_TYPE = "application/vnd.kubernetes.protobuf";
export const JSON_TYPE = "application/json";

/** @param contentType the header's value, parameters and all */
export function isProtobuf(contentType: string | undefined): boolean {
  return contentType?.split(";", 1)[0]?.trim().toLowerCase() === PROTOBUF_TYPE;
}
