package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

const (
	alarmNoSpace = 1
	alarmCorrupt = 2
)

var nospaceAlarm = described(Cause{
	ID: NospaceAlarm,
	Match: func(in *Input) *Match {
		m := &Match{Certainty: Proof, Because: ids(in, check.M06),
			RefutedBy: "an alarm row that a disarm in the log has cleared", Secondary: true}
		orphans, seen := orphans(in), map[string]bool{}
		for _, x := range in.Members {
			if x.DB == nil {
				continue
			}
			for _, a := range x.DB.Alarms {
				if a.Type != alarmNoSpace || orphans[dumplog.ID(a.MemberID)] {
					continue
				}
				name := memberLabel(in, a.MemberID)
				if name == "" || seen[name] || len(seen) == maxNamed {
					continue
				}
				seen[name], m.Members = true, append(m.Members, name)
			}
		}
		if len(m.Members) == 0 {
			return nil
		}
		return m
	},
})

// maxNamed bounds how many members a cause names: a hostile database raises alarms for any number of IDs.
const maxNamed = 100

// orphans returns the IDs in alarms that K08 found to belong to no member.
func orphans(in *Input) map[dumplog.ID]bool {
	out := map[dumplog.ID]bool{}
	for _, f := range in.Findings[check.K08] {
		for _, id := range f.Facts.About {
			out[id] = true
		}
	}
	return out
}

// memberLabel is the label of the source with that member ID, or the ID for a member that is not among the sources.
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

var orphanAlarm = described(Cause{
	ID: OrphanAlarm,
	Match: func(in *Input) *Match {
		m := aside(in, check.K08, "the member in the configuration that raft uses",
			func(check.Finding) bool { return true })
		if m != nil && onlyAlarm(in) {
			m.Secondary = false // CORRUPT alone decides the class, and its member does not exist
		}
		return m
	},
})

// onlyAlarm reports whether CORRUPT is raised and nothing contradicts the log or the other members.
func onlyAlarm(in *Input) bool {
	if in.found(check.K01, check.K02, check.K03, check.K06, check.L03, check.A04) {
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

var corruptAlarmMisleading = described(Cause{
	ID: CorruptAlarmMisleading,
	Match: func(in *Input) *Match {
		m := aside(in, check.K09, "keys that differ at the common index, on the member that the alarm names",
			func(check.Finding) bool { return true })
		if m != nil {
			m.Secondary = !onlyAlarm(in)
			if !in.found(check.K01, check.K03, check.K06) {
				m.Certainty = Strong // a divergence that has been repaired since leaves the same
			}
		}
		return m
	},
})

var compactionHashAfterResume = described(Cause{
	ID:    CompactionHashAfterResume,
	Match: matchCompactionHash,
})

func matchCompactionHash(in *Input) *Match {
	if !in.found(check.K09) || !onlyAlarm(in) || in.Replay == nil || in.Replay.Survey == nil {
		return nil
	}
	compacted, restarted := false, ""
	for _, k := range in.Replay.Survey.Marks {
		switch {
		case k.Kind == "compaction":
			compacted, restarted = true, ""
		case k.Kind == "start" && compacted:
			restarted = memberLabel(in, k.Member)
		case k.Corrupt && restarted != "":
			for _, m := range in.Members {
				if m.Version.Has(release.ResumedHashDiffers).Excluded() {
					return nil
				}
			}
			return &Match{Certainty: Strong, Members: []string{restarted}, Because: ids(in, check.K09, check.M06),
				RefutedBy: "keys that differ at the common index; a release with the fix on all members"}
		}
	}
	return nil
}
