/* Wine 8 has no bcryptprimitives.dll, of whose one function Go and Node make random numbers. */
#include <windows.h>

/* advapi32.dll's name of RtlGenRandom */
BOOLEAN NTAPI SystemFunction036(PVOID data, ULONG size);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) {
  const SIZE_T most = 1 << 16;
  while (size > 0) {
    ULONG part = (ULONG)(size < most ? size : most);
    if (!SystemFunction036(data, part)) return FALSE;
    data += part;
    size -= part;
  }
  return TRUE;
}
