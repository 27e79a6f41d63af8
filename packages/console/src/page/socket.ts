/** `10.144.1.5:8080`, `[fd00::5]:8080` */
export function socket(address: string, port: number): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
