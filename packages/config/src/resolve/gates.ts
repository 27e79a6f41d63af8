/** Feature gates: those that mean something here, and those that Kubernetes has. */

import type { Report } from "../report.ts";
import type { Features } from "../types.ts";
import type { ConfigInput } from "./input.ts";

/** Stages by which AllAlpha and AllBeta set those gates that are not given. */
type GateStage = "alpha" | "beta" | "stable";

interface Gate {
  readonly stage: GateStage;
  readonly byDefault: boolean;
}

const on = (stage: GateStage): Gate => ({ stage, byDefault: true });
const off = (stage: GateStage): Gate => ({ stage, byDefault: false });

/**
 * Gates of kube-proxy v1.37 that mean something here (pkg/features/kube_features.go, logs/api/v1/kube_features.go,
 * client-go).
 */
const KNOWN = {
  AllowServiceExternalIPs: on("stable"),
  ComponentFlagz: on("beta"),
  ComponentStatusz: on("beta"),
  KubeProxyIPVS: on("stable"),
  KubeProxyNFTablesLocalhostNodePorts: off("alpha"),
  LoggingAlphaOptions: off("alpha"),
  LoggingBetaOptions: on("beta"),
  PreferSameTrafficDistribution: on("stable"),
  WatchListClient: on("beta"),
} as const satisfies Readonly<Record<string, Gate>>;

type GateName = keyof typeof KNOWN;

/** Whether a gate is on: as given, else as AllAlpha or AllBeta say for its stage, else by default. */
export function isGateOn({ kubeProxy: { featureGates = {} } }: ConfigInput, name: GateName): boolean {
  const { stage, byDefault } = KNOWN[name];
  const ofStage = { alpha: featureGates["AllAlpha"], beta: featureGates["AllBeta"], stable: undefined }[stage];
  return featureGates[name] ?? ofStage ?? byDefault;
}

/**
 * The feature gates that kube-proxy v1.37.1 registers, those of all components among them: clusters often give one list
 * to each component (`utilfeature.DefaultMutableFeatureGate.GetAll()` of a program that imports pkg/features and what
 * cmd/kube-proxy adds).
 */
const KUBERNETES_GATES: ReadonlySet<string> = new Set(
  `
APIResponseCompression APIServerIdentity APIServerWebhookAuthenticationToken APIServingWithRoutine
AggregatedDiscoveryRemoveBetaType AllAlpha AllBeta AllowDNSOnlyNodeCSR
AllowInsecureKubeletCertificateSigningRequests AllowOverwriteTerminationGracePeriodSeconds
AllowParsingUserUIDFromCertAuth AllowServiceExternalIPs AllowUnsafeMalformedObjectDeletion AtomicFIFO
AtomicWriteVolumeUserFields AuthorizePodWebsocketUpgradeCreatePermission CBORServingAndStorage
CPUManagerPolicyAlphaOptions CPUManagerPolicyBetaOptions CPUManagerPolicyOptions CRDObservedGenerationTracking
CRDValidationRatcheting CRIListStreaming CSIServiceAccountTokenSecrets CSIVolumeHealth
ChangeContainerStatusOnKubeletRestart ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowCBOR
ClientsAllowTLSCacheGC ClientsPreferCBOR CloudControllerManagerWatchBasedRoutesReconciliation
CloudControllerManagerWebhook ClusterTrustBundle ClusterTrustBundleProjection ComponentFlagz ComponentStatusz
CompositePodGroup ConcurrentWatchObjectDecode ConsistentListFromCacheSkipTimeoutFallback ConstrainedImpersonation
ContainerCheckpoint ContainerRestartRules ContainerStopSignals ContextualLogging CoordinatedLeaderElection
CrossNamespaceVolumeDataSource CustomCPUCFSQuotaPeriod CustomResourceFieldSelectors DRAAdminAccess
DRAConsumableCapacity DRADerivedAttributes DRADeviceBindingConditions DRADeviceCompatibilityGroups
DRADeviceTaintRules DRADeviceTaints DRAExtendedResource DRAFractionalCapacityRange DRAListTypeAttributes
DRANodeAllocatableResources DRAOptionalNodeOperations DRAPartitionableDevices DRAPartitionableDevicesType
DRAPrioritizedList DRAResourceClaimDeviceStatus DRAResourceClaimGranularStatusAuthorization DRAResourcePoolStatus
DRASchedulerFilterTimeout DRAWorkloadResourceClaims DeclarativeValidation DeclarativeValidationBeta
DeclarativeValidationTakeover DefaultPodSysctls DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency
DisableAllocatorDualWrite DisableCPUQuotaWithExclusiveCPUs DisableNodeKubeProxyVersion DynamicResourceAllocation
EmptyDirVolumeMode EnvFiles EtcdRangeStream EventedPLEG EvictionRequestAPI ExcludeAdmissionWebhookVirtualResources
ExecProbeTimeout ExtendWebSocketsToKubelet ExternalServiceAccountTokenSigner GRPCContainerProbeTLS GenericWorkload
GitRepoVolumeDriver GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority H2CContainerProbe
HPAConfigurableTolerance HPAGeneration HPAOptimizedSelectorStore HPAScaleToZero HostnameOverride
HugepageAwareEviction ImageMaximumGCAge ImageVolume ImageVolumeWithDigest InOrderInformers
InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScaling
InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory
InPlacePodVerticalScalingInitContainers InPlacePodVerticalScalingMemoryBackedVolumes
InPlacePodVerticalScalingSchedulerPreemption InformerResourceVersion InterPodAffinityHostnameFastPath JobManagedBy
KMSv1 KubeProxyIPVS KubeProxyNFTablesLocalhostNodePorts KubeletAllocatedPodsEndpoint KubeletCgroupDriverFromCRI
KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletFineGrainedAuthz KubeletInUserNamespace KubeletPSI
KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletPodResourcesListUseActivePods
KubeletRegistrationGetOnExistsOnly KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders
KubeletTracing ListFromCacheSnapshot LocalStorageCapacityIsolationFSQuotaMonitoring LoggingAlphaOptions
LoggingBetaOptions ManifestBasedAdmissionControlConfig MatchLabelKeysInPodAffinity MatchLabelKeysInPodTopologySpread
MatchLabelKeysInPodTopologySpreadSelectorMerge MaxUnavailableStatefulSet MemoryQoS MultiCIDRServiceAllocator
MutableCSINodeAllocatableCount MutablePVNodeAffinity MutablePodResourcesForSuspendedJobs
MutableSchedulingDirectivesForSuspendedJobs MutatingAdmissionPolicy NFTablesNetlink NFTablesProxyMode
NativeHistograms NodeControllerLeaseCircuitBreaker NodeDeclaredFeatures NodeInclusionPolicyInPodTopologySpread
NodeLifecycleConditions NodeLogQuery NodeSwap NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching
PLEGOnDemandRelist PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodCertificateRequest
PodDeletionCost PodGroupPreemptionPolicy PodLevelResourceManagers PodLevelResources PodLevelResourcesFixDefaulting
PodLevelResourcesFixKubeletQOSClass PodLogsQuerySplitStreams PodObservedGenerationTracking
PodReadyToStartContainersCondition PodSchedulingReadiness PodTopologyLabelsAdmission PodsAPI PortForwardWebsockets
PreferSameTrafficDistribution ProcMountType QOSReserved RecoverVolumeExpansionFailure RecursiveReadOnlyMounts
ReduceDefaultCrashLoopBackOffDecay RelaxedEnvironmentVariableValidation RelaxedServiceNameValidation
ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus
ResourceHealthStatusMessage RestartAllContainersOnContainerExits RotateKubeletServerCertificate
RuntimeClassInImageCriApi SELinuxChangePolicy SELinuxMount SELinuxMountReadWriteOncePod SchedulerAsyncAPICalls
SchedulerAsyncPreemption SchedulerPopFromBackoffQ SchedulerPreQueueingHints SeparateCacheWatchRPC
SeparateTaintEvictionController ServiceAccountNodeAudienceRestriction ServiceAccountTokenJTI
ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo
ServiceCIDRStatusFieldWiping ShardedListAndWatch SizeBasedListCostEstimate StaleControllerConsistencyDaemonSet
StaleControllerConsistencyHPA StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
StaleControllerConsistencyStatefulSet StatefulSetRecreateStrategy StatefulSetSemanticRevisionComparison
StorageCapacityScoring StorageNamespaceIndex StorageVersionAPI StorageVersionHash StorageVersionMigrator
StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector
StructuredAuthenticationConfigurationJWKSMetrics SupplementalGroupsPolicy SystemdWatchdog
TaintTolerationComparisonOperators TokenRequestServiceAccountUIDValidation TopologyAwareWorkloadScheduling
TopologyManagerPolicyAlphaOptions TopologyManagerPolicyBetaOptions TopologyManagerPolicyOptions
TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation UnknownVersionInteroperabilityProxy
UnlockWhileProcessingFIFO UserNamespacesHostNetworkSupport UserNamespacesSupport VolumeAttributesClass
VolumeBindMountOptions VolumeLimitScaling WatchCacheInitializationPostStartHook WatchList WatchListClient
WatchListCompression WebhookRoundTripLoadBalancing WinDSR WinOverlay WindowsCPUAndMemoryAffinity
WindowsGracefulNodeShutdown WindowsHostNetwork WorkloadWithJob
`
    .trim()
    .split(/\s+/),
);

/** What gates give and take. Gates that Kubernetes does not have are reported: one of them may be a misspelling. */
export function resolveFeatures(input: ConfigInput, report: Report): Features {
  const given = Object.keys(input.kubeProxy.featureGates ?? {});
  const unknown = given.filter((gate) => !Object.hasOwn(KNOWN, gate) && !KUBERNETES_GATES.has(gate));
  if (unknown.length > 0) report.warn(`${report.name("featureGates")}: unknown gates, ignored: ${unknown.join(", ")}`);
  return {
    externalIPs: isGateOn(input, "AllowServiceExternalIPs"),
    nodeHints: isGateOn(input, "PreferSameTrafficDistribution"),
    watchList: isGateOn(input, "WatchListClient"),
    statusz: isGateOn(input, "ComponentStatusz"),
    flagz: isGateOn(input, "ComponentFlagz"),
    nftLocalhostNodePorts: isGateOn(input, "KubeProxyNFTablesLocalhostNodePorts"),
  };
}
