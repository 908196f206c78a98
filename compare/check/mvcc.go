package check

import (
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

var mvccInvariants = described(Check{
	ID:    K04,
	Needs: NeedDB,
	Run: func(in *Input) Result {
		return keyViolations(in, KindHistoryImpossible, ClassDBDamage, Critical,
			func(rule string) bool { return rule != dumpdb.RuleLease })
	},
})

var leasesOfKeysExist = described(Check{
	ID:    L02,
	Needs: NeedDB,
	Run: func(in *Input) Result {
		return keyViolations(in, KindLeaseOfKeyMissing, ClassLatentDivergence, Error,
			func(rule string) bool { return rule == dumpdb.RuleLease })
	},
})

// keyViolations makes findings of violations of the wanted MVCC rules.
func keyViolations(in *Input, kind Kind, class Class, sev Severity, want func(rule string) bool) Result {
	var fs []Finding
	var unread []string
	for _, m := range in.Members {
		if !m.HasDB() || m.DB.KV == nil {
			continue
		}
		if m.DB.KVDamaged {
			unread = append(unread, m.Label()+": part of bucket key cannot be read")
			continue
		}
		f, first := Finding{Kind: kind, Severity: sev, Class: class, Members: []string{m.Label()}}, ""
		for _, v := range m.DB.KV.Violations {
			if !want(v.Rule) {
				continue
			}
			f.Facts.Undecodable = f.Facts.Undecodable || v.Rule == dumpdb.RuleUndecodable
			f.Facts.RecordMissing = f.Facts.RecordMissing || v.Rule == dumpdb.RuleContiguousSub
			if first == "" {
				first = v.Rule
			}
			if f.At.Revision == nil {
				f.At.Revision = &Rev{Main: v.Main, Sub: v.Sub}
			}
			show, field := showRev(m, v.Main), v.Rule+" at revision "+v.Rev.String()
			if v.Main == 0 { // its key is not a revision
				show, field = showDB(m, "--page", v.Page), v.Rule
			}
			f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: m.DB.File, Page: Uint64(v.Page),
				Offset: Int64(v.Offset), Bucket: "key", Key: Bytes(v.Key),
				Field: field, Observed: v.Observed, Expected: v.Expected, Show: show})
		}
		if n := len(f.Evidence); n > 0 {
			f.Title = fmt.Sprintf("%s: %s not a possible history (first: %s)", m.Label(),
				plural.Of(n, "record of bucket key is", "records of bucket key are"), first)
			if first == dumpdb.RuleLease {
				f.Title = fmt.Sprintf("%s: %s a lease that does not exist", m.Label(),
					plural.Of(n, "record names", "records name"))
			}
			f.Explanation = "first at revision " + fmt.Sprint(f.At.Revision.Main)
			fs = append(fs, in.cut(f))
		}
	}
	return outcome(fs, strings.Join(unread, "; "))
}
