/** Which kernel API the tools speak to: nf_tables, or the x_tables of old. */
export type Variant = "nft" | "legacy";
