/** Rules that the plan needs, by table. */
export interface Totals {
  filter: number;
  nat: number;
}
