package cause

import (
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/release"
)

const (
	alarmNoSpace = 1
	alarmCorrupt = 2
)

var nospaceAlarm = Cause{
	ID: "nospace-alarm", Title: "a database reached its quota and writes are refused",
	Doc: `The database file of one member grew over --quota-backend-bytes. The server raised NOSPACE through the log, and all members refuse puts,
lease grants and transactions that cost space until the alarm is disarmed. The write that exceeded the quota is applied everywhere, so
nothing diverges.`,
	Affected:   []string{"all"},
	LookAlikes: "orphan-alarm: the member that the alarm names is none any more",
	Recovery: "etcdctl compact to a recent revision, etcdctl defrag each member, then etcdctl alarm disarm; raise " +
		"the quota or the rate of compaction",
	Loss: "none: writes refused since then were never accepted",
	Match: func(in *Input) *Match {
		m := &Match{Certainty: Proof, Because: ids(in, "M06"),
			RefutedBy: "an alarm row that a disarm in the log has cleared", Aside: true}
		for _, x := range in.Members {
			if x.DB == nil {
				continue
			}
			for _, a := range x.DB.Alarms {
				name := memberLabel(in, a.MemberID)
				if a.Type == alarmNoSpace && name != "" && !orphan(in, a.MemberID.String()) &&
					!slices.Contains(m.Members, name) {
					m.Members = append(m.Members, name)
				}
			}
		}
		if len(m.Members) == 0 {
			return nil
		}
		return m
	},
}

// orphan tells whether K08 found the member of an alarm to be none.
func orphan(in *Input, id string) bool {
	for _, f := range in.Findings["K08"] {
		for _, e := range f.Evidence {
			if string(e.Key) == id {
				return true
			}
		}
	}
	return false
}

// memberLabel is the label of the source with that member ID; a member of the configuration that is no source is named
// by its ID.
func memberLabel(in *Input, id interface{ String() string }) string {
	for _, m := range in.Members {
		if m.MemberID != 0 && m.MemberID.String() == id.String() {
			return m.Label()
		}
	}
	if id.String() == "0" {
		return ""
	}
	return id.String()
}

var orphanAlarm = Cause{
	ID: "orphan-alarm", Title: "an alarm is raised for a member that does not exist any more",
	Doc: `Alarms are rows of the database and outlive the member that they name: it was removed, or the database was restored into a new cluster or
forced into one while the alarm was on. The alarm goes on refusing writes although no member is over quota or damaged.`,
	Affected:   []string{"all"},
	Refs:       refs("etcd-io/etcd", 14379),
	LookAlikes: "CORRUPT for member ID 0, which is deliberate from 3.4.23 and 3.5.7 on",
	Recovery:   "check that the other members are below their quota and agree, then etcdctl alarm disarm",
	Loss:       "none; writes are refused until then",
	Match: func(in *Input) *Match {
		m := aside(in, "K08", "the member in the configuration that raft uses",
			func(check.Finding) bool { return true })
		if m != nil && onlyAlarm(in) {
			m.Aside = false // CORRUPT alone decides the class, and its member does not exist
		}
		return m
	},
}

// onlyAlarm tells whether CORRUPT is raised and nothing contradicts the log or the other members.
func onlyAlarm(in *Input) bool {
	if len(in.Findings["K01"])+len(in.Findings["K02"])+len(in.Findings["K03"])+len(in.Findings["K06"])+len(in.Findings["L03"])+len(in.Findings["A04"]) > 0 {
		return false
	}
	for _, m := range in.Members {
		if m.DB == nil {
			continue
		}
		for _, a := range m.DB.Alarms {
			if a.Type == alarmCorrupt {
				return true
			}
		}
	}
	return false
}

var corruptAlarmMisleading = Cause{
	ID: "corrupt-alarm-misleading", Title: "the CORRUPT alarm names the wrong member, or nothing is corrupt",
	Doc: `The check for corruption compares hashes of the leader with those of its peers and, up to 3.4.22 and 3.5.6, blames the peer whatever side
is wrong. Up to 3.4.27 and 3.5.9 it also took the hash of another cluster that answers at a peer's address. The comparison of all keys and
the replay of the log against each database are what decides.
Proven when the member that contradicts the log is another than the one named. Strong when the members' keys are equal at the common index: what
the alarm found may have been overwritten or deleted since.`,
	Affected: []string{"up to 3.4.22 and 3.5.6 (wrong member)", "up to 3.4.27 and 3.5.9 (foreign cluster answers)"},
	FixedIn: []string{"3.4.23 and 3.5.7 (names nobody)", "3.4.28 and 3.5.10 (checks the cluster ID)",
		"3.6.0 (majority decides)"},
	Refs: append(refs("etcd-io/etcd", 15548), "https://github.com/etcd-io/etcd/pull/14272",
		"https://github.com/etcd-io/etcd/pull/14828",
		"https://github.com/etcd-io/etcd/pull/16637", "https://github.com/etcd-io/etcd/pull/16995"),
	LookAlikes: "a divergence whose keys were overwritten or deleted since; compaction-hash-after-resume",
	Recovery:   "decide by the comparison, not by the alarm; reseed the member that is wrong, if any; etcdctl alarm disarm",
	Loss:       "none by itself; every request is refused while the alarm is on",
	Match: func(in *Input) *Match {
		m := aside(in, "K09", "keys that differ at the common index, on the member that the alarm names",
			func(check.Finding) bool { return true })
		if m != nil {
			m.Aside = !onlyAlarm(in)
			if len(in.Findings["K01"])+len(in.Findings["K03"])+len(in.Findings["K06"]) == 0 {
				m.Certainty = Strong // a divergence that healed since leaves the same
			}
		}
		return m
	},
}

var compactionHashAfterResume = Cause{
	ID: "compaction-hash-after-resume", Title: "a compaction resumed after a restart gave a hash that differs " +
		"without reason",
	Doc: `A compaction that a restart interrupted is resumed at the start, and the hash that is taken of it covers less than on the members that
finished it at once. The check of compaction hashes (3.5.5 to 3.5.9) and the periodic check then raise CORRUPT although the contents agree.
Shown by a CORRUPT alarm with equal keys on all members, a compaction before it in the log, and a restart between the two.`,
	Affected: []string{"3.5.5 - 3.5.9 with the compaction hash check", "periodic check up to 3.4.26 and 3.5.9"},
	FixedIn:  []string{"3.4.27", "3.5.10", "3.6.0"},
	Refs: append(refs("etcd-io/etcd", 15919), "https://github.com/etcd-io/etcd/pull/15985",
		"https://github.com/etcd-io/etcd/pull/14457"),
	LookAlikes: "a divergence that later writes healed; corrupt-alarm-misleading",
	Recovery:   "verify that the contents agree, then etcdctl alarm disarm; upgrade",
	Loss:       "none",
	Match:      matchCompactionHash,
}

func matchCompactionHash(in *Input) *Match {
	if len(in.Findings["K09"]) == 0 || !onlyAlarm(in) || in.Replay == nil || in.Replay.Survey == nil {
		return nil
	}
	compacted, restarted := false, ""
	for _, k := range in.Replay.Survey.Marks {
		switch {
		case k.Kind == "compaction":
			compacted, restarted = true, ""
		case k.Kind == "start" && compacted:
			restarted = memberLabel(in, k.Member)
		case k.Kind == "alarm" && restarted != "" && strings.Contains(k.What, "activate CORRUPT"):
			for _, m := range in.Members {
				if m.Version.Has(release.ResumedHashDiffers).Excluded() {
					return nil
				}
			}
			return &Match{Certainty: Strong, Members: []string{restarted}, Because: ids(in, "K09", "M06"),
				RefutedBy: "keys that differ at the common index; a release with the fix on all members"}
		}
	}
	return nil
}
