import type { Flow } from "@fairlead/inspect";

const BYTES = new Intl.NumberFormat("en", {
  style: "unit",
  unit: "byte",
  unitDisplay: "narrow",
  notation: "compact",
  maximumFractionDigits: 1,
});

/** `7.7MB` */
export function bytesText(bytes: number): string {
  return BYTES.format(bytes);
}

/** Bytes and packets of one direction; a dash where the kernel does not count them. */
export function Volume({ volume }: { readonly volume: Flow["sent"] }) {
  if (volume === undefined) return <>–</>;
  return <span title={`${volume.bytes} bytes in ${volume.packets} packets`}>{bytesText(volume.bytes)}</span>;
}
