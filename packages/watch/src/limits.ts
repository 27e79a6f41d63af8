/**
 * Bounds of what is read, wherever it comes from. etcd takes objects of 1.5 MiB; their JSON is a few times that.
 * Nothing that a proxy reads is nested deeper than a dozen levels, managedFields included.
 */

/** Bytes of one object's text. */
export const MAX_OBJECT_BYTES = 8 * 2 ** 20;
/** Objects and arrays inside one another. */
export const MAX_DEPTH = 100;
/**
 * Fields of one object in protobuf, where two bytes can be one: 50 ms of reading while nothing is optimized. A full
 * EndpointSlice has 10,000; the API would allow it 100 addresses for each of its 1,000 endpoints.
 */
export const MAX_PARTS = 120_000;
/** Bytes of one manifest file. */
export const MAX_FILE_BYTES = 64 * 2 ** 20;
/** Bytes of the beginning of something too long that are kept, to say what it was. */
export const BEGINNING_BYTES = 4096;

/** For error messages: `8 MiB`. */
export function mebibytes(bytes: number): string {
  return `${Math.round((bytes * 10) / 2 ** 20) / 10} MiB`;
}
