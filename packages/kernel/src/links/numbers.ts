/** Messages of rtnetlink (linux/rtnetlink.h): RTM_NEWLINK and those after it. */
export const TYPES = {
  newLink: 16,
  deleteLink: 17,
  getLink: 18,
  newAddress: 20,
  deleteAddress: 21,
  getAddress: 22,
} as const;

/** NLM_F_CREATE and NLM_F_EXCL: what is there already is an error. */
export const CREATE = 0x600;

/** IFLA_IFNAME, IFLA_MASTER, IFLA_LINKINFO and, within the latter, IFLA_INFO_KIND (linux/if_link.h). */
export const LINK_PART = { name: 3, master: 10, info: 18, kind: 1 } as const;

/** IFA_ADDRESS and IFA_LOCAL (linux/if_addr.h). */
export const ADDRESS_PART = { address: 1, local: 2 } as const;
