package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// logFilter selects entries. The zero value selects all, and the records that are not entries.
type logFilter struct {
	start, end  uint64
	index       string
	term        uint64
	entryTypes  []string
	key, prefix string
	user        string
	proposer    string
	lease       string
	grep        string

	committed, uncommitted, overwritten bool

	// active is true if any filter is set: then only entries (and damage) are shown.
	active bool
	filter dumplog.Filter
	// counted is filter with the bounds of --committed and --uncommitted.
	counted dumplog.Filter
	re      *regexp.Regexp
}

func (l *logFilter) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Uint64Var(&l.start, "start-index", 0, "from this index on")
	f.Uint64Var(&l.end, "end-index", 0, "up to and with this index")
	f.StringVar(&l.index, "index", "", "an index or a range: 5, 1..10, ~10 (the last ten)")
	f.Uint64Var(&l.term, "term", 0, "only this term")
	f.StringSliceVar(&l.entryTypes, "entry-type", nil, "kinds of requests, such as put, txn, auth_enable; the names "+
		"of etcd-dump-logs work too")
	f.StringVar(&l.key, "key", "", "requests that name this key, or a range that holds it")
	f.StringVar(&l.prefix, "prefix", "", "requests that name a key with this prefix")
	f.StringVar(&l.user, "user", "", "requests of a user, or about the user")
	f.StringVar(&l.proposer, "proposer", "", "requests proposed by a member (name or hex ID)")
	f.StringVar(&l.lease, "lease", "", "requests about a lease (hex ID), or keys put with it")
	f.StringVar(&l.grep, "grep", "", "lines that match this regular expression")
	f.BoolVar(&l.committed, "committed", false,
		"entries that the source proves committed and that were not overwritten")
	f.BoolVar(&l.uncommitted, "uncommitted", false, "entries above the highest index that the source proves committed")
	f.BoolVar(&l.overwritten, "overwritten", false, "entries that a later append replaced")
}

// filterFlags are the flags that limit a listing to entries.
var filterFlags = []string{"start-index", "end-index", "index", "term", "entry-type", "key", "prefix", "user",
	"proposer", "lease", "grep",
	"committed", "uncommitted", "overwritten"}

// check reads the flags that need no source.
func (l *logFilter) check(cmd *cobra.Command) error {
	for _, name := range filterFlags {
		l.active = l.active || cmd.Flags().Changed(name)
	}
	kinds, err := entryKinds(l.entryTypes)
	if err != nil {
		return err
	}
	if l.end > 0 && l.start > l.end {
		return usagef("", "--start-index %d is above --end-index %d", l.start, l.end)
	}
	l.filter = dumplog.Filter{From: l.start, To: l.end, Term: l.term, Kinds: kinds, User: l.user}
	if l.key != "" {
		l.filter.Key = []byte(l.key)
	}
	if l.prefix != "" {
		l.filter.Prefix = []byte(l.prefix)
	}
	if l.lease != "" {
		id, err := dumplog.ParseID(l.lease)
		if err != nil {
			return usagef("", "--lease: %v", err)
		}
		l.filter.Lease = int64(id)
	}
	if l.grep != "" {
		if l.re, err = regexp.Compile(l.grep); err != nil {
			return usagef("", "--grep: %v", err)
		}
	}
	only := true
	if l.overwritten {
		l.filter.Overwritten = &only
	} else if l.committed || l.uncommitted {
		only = false
		l.filter.Overwritten = &only
	}
	return nil
}

// resolve reads the flags that need the source: names of members, the end of the log, the commit index.
func (l *logFilter) resolve(m *evidence.Member, commit uint64) error {
	if l.index != "" {
		if err := l.parseRange(m.LastIndex()); err != nil {
			return err
		}
	}
	l.bound(commit)
	if l.proposer == "" {
		return nil
	}
	for id, name := range m.Membership.Names {
		if name == l.proposer {
			l.filter.Proposer = id
			return nil
		}
	}
	id, err := dumplog.ParseID(l.proposer)
	if err != nil {
		return usagef("give the hex ID", "--proposer: no member is named %s in this source", l.proposer)
	}
	l.filter.Proposer = id
	return nil
}

// bound turns --committed and --uncommitted into ranges of the index, for counting. Listings decide per entry, since
// the commit index may grow meanwhile.
func (l *logFilter) bound(commit uint64) {
	l.counted = l.filter
	if l.uncommitted {
		l.counted.From = max(l.counted.From, commit+1)
	}
	if l.committed && (l.counted.To == 0 || l.counted.To > commit) {
		if l.counted.To = commit; commit == 0 {
			l.counted.From, l.counted.To = 2, 1 // nothing
		}
	}
}

// parseRange reads 5, 1..10, 5.., ..10 or ~10.
func (l *logFilter) parseRange(last uint64) error {
	bad := usagef("want 5, 1..10, 5.., ..10 or ~10", "--index %q is not a range", l.index)
	num := func(s string, empty uint64) (uint64, error) {
		if s == "" {
			return empty, nil
		}
		return strconv.ParseUint(s, 10, 64)
	}
	if s, ok := strings.CutPrefix(l.index, "~"); ok {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil || n == 0 {
			return bad
		}
		l.filter.From = last - min(last, n) + 1
		return nil
	}
	from, to, isRange := strings.Cut(l.index, "..")
	var err error
	if l.filter.From, err = num(from, 0); err != nil {
		return bad
	}
	if !isRange {
		to = from
	}
	if l.filter.To, err = num(to, 0); err != nil || l.index == ".." || to != "" && l.filter.To < max(l.filter.From, 1) {
		return bad
	}
	return nil
}

// dumpLogsNames are the entry types of etcd-dump-logs (tools/etcd-dump-logs/main.go).
var dumpLogsNames = map[string][]dumplog.Kind{
	"configchange":        {dumplog.KindConfChange, dumplog.KindConfChangeV2},
	"request":             {dumplog.KindV2},
	"irrrange":            {dumplog.KindRange},
	"irrput":              {dumplog.KindPut},
	"irrdeleterange":      {dumplog.KindDeleteRange},
	"irrtxn":              {dumplog.KindTxn},
	"irrcompaction":       {dumplog.KindCompaction},
	"irrleasegrant":       {dumplog.KindLeaseGrant},
	"irrleaserevoke":      {dumplog.KindLeaseRevoke},
	"irrleasecheckpoint":  {dumplog.KindLeaseCheckpoint},
	"unknownnormal":       {dumplog.KindUnknown},
	"internalraftrequest": nil, // every kind that is a field of it
	"normal":              nil,
}

// entryKinds reads --entry-type.
func entryKinds(names []string) ([]dumplog.Kind, error) {
	var out []dumplog.Kind
	for _, n := range names {
		low := strings.ToLower(strings.NewReplacer("-", "_").Replace(n))
		kinds, known := dumpLogsNames[low]
		for _, k := range dumplog.Kinds() {
			internal := k != dumplog.KindEmpty && k != dumplog.KindConfChange && k != dumplog.KindConfChangeV2 &&
				k != dumplog.KindUnknown && k != dumplog.KindV2
			switch {
			case string(k) == low:
				kinds, known = append(kinds, k), true
			case low == "internalraftrequest" && internal, low == "normal" && k != dumplog.KindConfChange &&
				k != dumplog.KindConfChangeV2:
				kinds = append(kinds, k)
			}
		}
		if !known {
			return nil, usagef(fmt.Sprintf("the kinds are: %v", dumplog.Kinds()),
				"--entry-type %s is not a kind of request", n)
		}
		out = append(out, kinds...)
	}
	return out, nil
}
