package release

// Rules of executing requests: permissions, auth, transactions, alarms.
var (
	// LeaseCheckSkipsRoot: before, a revoke by root that met a newer auth revision was refused if the lease had keys.
	LeaseCheckSkipsRoot = &Rule{
		ID: "lease-check-skips-root",
		What: "a lease revoke does not check the keys of the lease for a user with role root, whatever auth revision " +
			"the request carries",
		In:     since(Release{4, 27}, Release{5, 10}),
		Source: "server/etcdserver/apply_auth.go, checkLeasePutsKeys",
	}
	// NestedTxnPermission: before, the operations of nested transactions were executed unchecked.
	NestedTxnPermission = &Rule{
		ID:     "nested-txn-permission",
		What:   "the operations of nested transactions need permission",
		In:     since(Release{4, 42}, Release{5, 28}, Release{6, 9}),
		Source: "server/etcdserver/apply_auth.go, checkTxnReqsPermission; 3.6.9: server/etcdserver/txn/txn.go",
	}
	// TxnPutChecks: before, a put in a transaction needed permission for its key only.
	TxnPutChecks = &Rule{
		ID: "txn-put-checks",
		What: "a put in a transaction needs permission for the keys of its lease, and to read with prev_kv, as a " +
			"plain put does",
		In:     since(Release{4, 44}, Release{5, 30}, Release{6, 11}),
		Source: "server/etcdserver/apply_auth.go, checkPutAuth",
	}
	// TxnRangesKept: before, members without the waiting client removed top-level ranges before anything was checked.
	TxnRangesKept = &Rule{
		ID:     "txn-ranges-kept",
		What:   "every member checks the ranges of a transaction, not only the one with the waiting client",
		In:     since(Release{7, 0}),
		Source: "server/etcdserver/server.go, removeNeedlessRangeReqs (removed in 3.7.0)",
	}
	// AlarmKeepsChecks: before, raising an alarm at run time disabled the checks of permission and quota until the
	// alarm was cleared.
	AlarmKeepsChecks = &Rule{
		ID:     "alarm-keeps-checks",
		What:   "permissions are checked while an alarm is on",
		In:     since(Release{6, 0}),
		Source: "server/etcdserver/apply/uber_applier.go @ v3.6.0",
	}
	// NestedPutsCost is unknown for 3.8, which exists only as an alpha without it.
	NestedPutsCost = &Rule{
		ID:   "nested-puts-cost",
		What: "puts in nested transactions count when NOSPACE is on",
		In: Spans{{From: Release{5, 33}, Until: Release{6, 0}}, {From: Release{6, 14}, Until: Release{7, 0}},
			{From: Release{7, 1}, Until: Release{8, 0}}, {From: Release{8, 0}, Open: true}},
		Source: "server/etcdserver/quota.go, costTxnReq",
	}
	// GrantNeedsPermission: before, such a request caused a panic.
	GrantNeedsPermission = &Rule{
		ID:     "grant-needs-permission",
		What:   "granting no permission to a role is refused",
		In:     Spans{{From: Release{4, 25}}},
		Source: "server/auth/store.go, RoleGrantPermission",
	}
	// GrantChecksRange: before, ranges that end before they begin were stored.
	GrantChecksRange = &Rule{
		ID:     "grant-checks-range",
		What:   "granting a permission on an empty key or on an empty range is refused",
		In:     since(Release{4, 25}, Release{5, 8}),
		Source: "server/auth/store.go, RoleGrantPermission; range_perm_cache.go, isValidPermissionRange",
	}
	// RoleNeedsName concerns RoleAdd.
	RoleNeedsName = &Rule{
		ID:     "role-needs-name",
		What:   "a role without a name is refused",
		In:     since(Release{4, 0}),
		Source: "server/auth/store.go, RoleAdd",
	}
	// PasswordLengthBound concerns requests with a password in clear. bcrypt of golang.org/x/crypto 0.5.0 refuses it,
	// older ones hash its start. Any release may be built with a newer x/crypto.
	PasswordLengthBound = &Rule{
		ID:     "password-length-bound",
		What:   "a password of more than 72 bytes is refused",
		In:     since(Release{4, 28}, Release{5, 10}),
		Source: "go.mod, the version of golang.org/x/crypto",
	}
	// UserOptions: since then the row of every new user has options, even if the request has none.
	UserOptions = &Rule{
		ID:     "user-options",
		What:   "rows of users carry options",
		In:     since(Release{4, 0}),
		Source: "server/auth/store.go, UserAdd",
	}
	// PasswordWithoutOptions: 3.4.0 to 3.4.3 stored no password for a user whose request had no options.
	PasswordWithoutOptions = &Rule{
		ID:     "password-without-options",
		What:   "a user added without options gets the password of the request",
		In:     Spans{{Until: Release{4, 0}}, {From: Release{4, 4}}},
		Source: "auth/store.go @ v3.4.4, UserAdd",
	}
	// PasswordHashInRequest: before, each member hashed the password with its own salt.
	PasswordHashInRequest = &Rule{
		ID:     "password-hash-in-request",
		What:   "the proposer hashes passwords, so that all members store the same hash",
		In:     since(Release{5, 0}),
		Source: "server/auth/store.go, selectPassword",
	}
	// NamesUTF8: before, any bytes were a user name.
	NamesUTF8 = &Rule{
		ID:     "names-utf8",
		What:   "an entry whose user name is not UTF-8 does not decode",
		In:     since(Release{7, 0}),
		Source: "api/etcdserverpb/raft_internal.pb.go @ v3.7.0",
	}
	// PermCacheColdStart: permissions of other users than root were only known after the next change of auth.
	PermCacheColdStart = &Rule{
		ID:     "perm-cache-cold-start",
		What:   "a started server knows no permissions until auth is changed",
		In:     within(Release{4, 20}, Release{4, 21}),
		Source: "auth/store.go @ v3.4.20, NewAuthStore",
	}
	// PermCacheFollowsSnapshot: before, the permissions from before a received snapshot stayed in use.
	PermCacheFollowsSnapshot = &Rule{
		ID:     "perm-cache-follows-snapshot",
		What:   "the permissions in use are those of the database that was received",
		In:     since(Release{4, 22}, Release{5, 6}),
		Source: "server/auth/store.go, Recover",
	}
	// PermCacheEmptyAfterSnapshot: the cache was not loaded, and no longer filled at the first use.
	PermCacheEmptyAfterSnapshot = &Rule{
		ID:     "perm-cache-empty-after-snapshot",
		What:   "a server that received a database knows no permissions until auth is changed",
		In:     Spans{{From: Release{4, 20}, Until: Release{4, 22}}, {From: Release{5, 5}, Until: Release{5, 6}}},
		Source: "auth/store.go @ v3.4.22, Recover",
	}
	// PermCacheEager: before, permissions of a user were cached at the first use and dropped at a change.
	PermCacheEager = &Rule{
		ID:     "perm-cache-eager",
		What:   "the permissions of all users are computed at every change of auth",
		In:     since(Release{4, 20}, Release{5, 5}),
		Source: "server/auth/range_perm_cache.go, refreshRangePermCache",
	}
)

// AuthStatusRPC is the request AuthStatus. Without it, the auth state and revision of a running member are only in a
// snapshot of its database.
var AuthStatusRPC = &Rule{
	ID:     "auth-status-rpc",
	What:   "servers answer AuthStatus, which returns the auth revision",
	In:     since(Release{5, 0}),
	Source: "api/etcdserverpb/rpc.proto",
}

// AlarmsInStatus are the alarms that a member knows, as texts. Without them, the request for alarms is an entry in the
// log.
var AlarmsInStatus = &Rule{
	ID:     "alarms-in-status",
	What:   "the status of a member names the alarms of all members",
	In:     since(Release{4, 0}),
	Source: "server/etcdserver/api/v3rpc/maintenance.go, Status",
}

var requestRules = []*Rule{
	AlarmsInStatus, AuthStatusRPC,
	LeaseCheckSkipsRoot, NestedTxnPermission, TxnPutChecks, TxnRangesKept, AlarmKeepsChecks,
	NestedPutsCost, GrantNeedsPermission,
	GrantChecksRange, RoleNeedsName, PasswordLengthBound, UserOptions, PasswordWithoutOptions, PasswordHashInRequest,
	NamesUTF8,
	PermCacheColdStart, PermCacheFollowsSnapshot,
	PermCacheEmptyAfterSnapshot, PermCacheEager}
