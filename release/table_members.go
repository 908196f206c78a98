package release

// Rules of membership and the v2 store.
var (
	// Learners: 3.3 panics at a conf change that adds one.
	Learners = &Rule{
		ID:     "learners",
		What:   "a cluster can have learners",
		In:     since(Release{4, 0}),
		Source: "server/etcdserver/api/membership/cluster.go",
	}
	// LearnerLimitOption: before, the limit was one learner.
	LearnerLimitOption = &Rule{
		ID:     "learner-limit-option",
		What:   "how many learners a cluster may have is an option of each server (1 by default)",
		In:     since(Release{6, 0}),
		Source: "server/etcdserver/api/membership/cluster.go @ v3.6.0, ValidateMaxLearnerConfig",
	}
	// MembersFromDB: the other releases read the v2 store of the .snap file and the log after it.
	MembersFromDB = &Rule{
		ID:     "members-from-db",
		What:   "a start reads members and cluster version from the database",
		In:     Spans{{From: Release{5, 0}, Until: Release{5, 1}}, {From: Release{6, 0}}},
		Source: "server/etcdserver/api/membership/cluster.go, Recover",
	}
	// ConfChangeFromDB: the other releases check conf changes against the v2 store.
	ConfChangeFromDB = &Rule{
		ID:     "conf-change-from-db",
		What:   "conf changes are checked against bucket members",
		In:     since(Release{6, 0}),
		Source: "server/etcdserver/api/membership/cluster.go @ v3.6.0, ValidateConfigurationChange",
	}
	// PendingByIndex: before, it refused them until the server had applied the last one.
	PendingByIndex = &Rule{
		ID:     "pending-by-index",
		What:   "a leader refuses conf changes until raft has handed out the last one",
		In:     since(Release{4, 0}),
		Source: "raft/raft.go, stepLeader and appliedTo",
	}
	// MemberRowsGated: before, entries at or below the consistent index wrote them again.
	MemberRowsGated = &Rule{
		ID:     "member-rows-gated",
		What:   "only entries above the consistent index write bucket members",
		In:     since(Release{5, 0}),
		Source: "server/etcdserver/api/membership/cluster.go, shouldApplyV3",
	}
	// MemberRowsReplaced: 3.5.1 to 3.5.19 left an existing row unchanged: no promotion, no new URLs, no name.
	MemberRowsReplaced = &Rule{
		ID:     "member-rows-replaced",
		What:   "a change of a member replaces its row in bucket members",
		In:     Spans{{Until: Release{5, 1}}, {From: Release{5, 20}}},
		Source: "server/etcdserver/api/membership/store.go, unsafeSaveMemberToBackend",
	}
	// UpdateKeepsLearner: before, all raft attributes of the request were stored, so the row of a learner became that
	// of a voter.
	UpdateKeepsLearner = &Rule{
		ID:     "update-keeps-learner",
		What:   "a member update changes peer URLs only",
		In:     since(Release{5, 31}, Release{6, 12}),
		Source: "server/etcdserver/api/membership/cluster.go, UpdateRaftAttributes",
	}
	// PromotionSynced is a repair of what 3.5.1 to 3.5.19 left.
	PromotionSynced = &Rule{
		ID:     "promotion-synced",
		What:   "a promotion that bucket members lacks is added when a snapshot is applied (3.6: at a start)",
		In:     within(Release{5, 24}, Release{7, 0}),
		Source: "server/etcdserver/api/membership/cluster.go, SyncLearnerPromotionIfNeeded",
	}
	// ZombiesRemoved is a repair of what older restores and removals left.
	ZombiesRemoved = &Rule{
		ID:     "zombies-removed",
		What:   "a server that publishes itself removes members that only the bucket has",
		In:     within(Release{5, 26}, Release{6, 0}),
		Source: "server/etcdserver/api/membership/cluster.go, CleanupZombieMembersIfNeeded",
	}
	// QuorumFromDB: the others take raft's configuration from the snapshot.
	QuorumFromDB = &Rule{
		ID:     "quorum-from-db",
		What:   "a start builds raft's configuration from bucket members",
		In:     since(Release{7, 0}),
		Source: "server/etcdserver/bootstrap.go @ v3.7.0",
	}
	// RestoreReplacesMembers is about snapshot restore.
	RestoreReplacesMembers = &Rule{
		ID:     "restore-replaces-members",
		What:   "a restore replaces the old members in bucket members by the new ones",
		In:     since(Release{5, 0}),
		Source: "etcdutl/snapshot/v3_snapshot.go, saveDB",
	}
	// V2Executed: 3.6 stops at such an entry.
	V2Executed = &Rule{
		ID:     "v2-executed",
		What:   "requests of v2 clients in the log are executed",
		In:     until(Release{6, 0}),
		Source: "server/etcdserver/apply_v2.go",
	}
	// V2Decoded: 3.7 stops at every entry in the form of v2, member attributes and cluster version too.
	V2Decoded = &Rule{
		ID:     "v2-decoded",
		What:   "entries in the form of v2 can be read",
		In:     until(Release{7, 0}),
		Source: "server/etcdserver/server.go, applyEntryNormal",
	}
	// V2StoreKept: from 3.6 on the v2 store of a .snap file is made of bucket members.
	V2StoreKept = &Rule{
		ID:     "v2-store-kept",
		What:   "the v2 store is kept and saved in .snap files as it is",
		In:     until(Release{6, 0}),
		Source: "server/etcdserver/server.go, snapshot",
	}
	// V2KeysRefused: 3.5 warns, 3.7 does not read the file.
	V2KeysRefused = &Rule{
		ID:     "v2-keys-refused",
		What:   "a start refuses a .snap file whose v2 store holds keys of clients",
		In:     within(Release{6, 0}, Release{7, 0}),
		Source: "server/storage/util.go @ v3.6.0, AssertNoV2StoreContent",
	}
	// DowngradeTests are downgrade_version_test.
	DowngradeTests = &Rule{
		ID:     "downgrade-tests",
		What:   "servers know the request that tests for a downgrade",
		In:     since(Release{6, 0}),
		Source: "api/etcdserverpb/raft_internal.proto @ v3.6.0",
	}
	// ClusterRequests are cluster_version_set, cluster_member_attr_set and downgrade_info_set.
	ClusterRequests = &Rule{
		ID:     "cluster-requests",
		What:   "servers know the v3 requests that set the cluster version, attributes of members and downgrades",
		In:     since(Release{5, 0}),
		Source: "server/etcdserver/apply.go, ClusterVersionSet",
	}
	// AttributesAsV3: the others propose PUT /0/members/ID/attributes and PUT /0/version.
	AttributesAsV3 = &Rule{
		ID:     "attributes-as-v3",
		What:   "a server proposes its attributes and the cluster version as v3 requests",
		In:     since(Release{6, 0}),
		Source: "server/etcdserver/server.go @ v3.6.0, publishV3",
	}
)

var memberRules = []*Rule{Learners, LearnerLimitOption, MembersFromDB, ConfChangeFromDB, PendingByIndex,
	MemberRowsGated, MemberRowsReplaced, UpdateKeepsLearner,
	PromotionSynced, ZombiesRemoved, QuorumFromDB, RestoreReplacesMembers, V2Executed, V2Decoded, V2StoreKept,
	V2KeysRefused, DowngradeTests, ClusterRequests, AttributesAsV3}
