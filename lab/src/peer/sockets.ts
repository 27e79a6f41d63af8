/** `10.0.0.1:80`, `[fd00::1]:80`; an IPv4 address that a dual-stack socket shows as IPv6 becomes IPv4 again. */
export function endpointText(address = "", port = 0): string {
  const plain = address.startsWith("::ffff:") ? address.slice("::ffff:".length) : address;
  return plain.includes(":") ? `[${plain}]:${port}` : `${plain}:${port}`;
}

/** The code of a system error, or its text. */
export function codeOf(error: unknown): string {
  if (error instanceof Error) return "code" in error && typeof error.code === "string" ? error.code : error.message;
  return String(error);
}
