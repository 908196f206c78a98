package cli

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/repair/extract"
	"github.com/etcd-medic/etcd-medic/shell"
)

func (o *extractOptions) show(r *extract.Result) error {
	sheet := render.Sheet{Sections: []render.Section{extractHead(r)}}
	add := func(s render.Section) {
		if len(s.Rows)+len(s.Lines)+len(s.Commands)+len(s.Pairs) > 0 {
			sheet.Sections = append(sheet.Sections, s)
		}
	}
	if r.Cluster != nil {
		add(clusterPart(r.Cluster))
	}
	add(lostPart(&r.Lost))
	add(leftOutPart(r.LeftOut))
	add(render.Section{Title: "notes", Lines: append(nothingText(r), r.Notes...)})
	next := render.Section{Title: "next"}
	if r.Cluster != nil && r.Cluster.DryRun && r.Cluster.Absent+r.Cluster.Different > 0 {
		next.Lines = []string{"run the same command with --write"}
	} else {
		for _, c := range o.next(r) {
			next.Commands = append(next.Commands, render.Command{Run: c})
		}
	}
	add(next)
	return render.Document(o.io.Out, o.format, r, sheet, o.renderOptions())
}

func extractHead(r *extract.Result) render.Section {
	what := fmt.Sprintf("%s, %s", plural.Of(r.Keys, "key", "keys"), plural.Size(r.Bytes))
	if r.Keys == 0 && r.Records > 0 {
		what = fmt.Sprintf("%s (%s), %s", plural.Of(r.Records, "record", "records"),
			plural.Of(r.Tombstones, "deletion", "deletions"), plural.Size(r.Bytes))
	}
	return render.Section{Pairs: [][2]string{
		{"source", r.Source + " (" + r.SourceKind + ")"},
		{"revision", fmt.Sprintf("%d, compact revision %d", r.Revision, r.CompactRevision)},
		{"extracted", what},
		{"deleted keys", count(r.DeletedKeys)},
		{"salvaged", count(r.Salvaged)},
		{"files", count(r.Files)},
		{"leases", leaseText(r)},
		{"output", r.Output},
		{"sha256", r.SHA256},
	}}
}

func count(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// nothingText says that an extract is empty, where nothing else says why.
func nothingText(r *extract.Result) []string {
	if !r.Empty() || r.Short() {
		return nil
	}
	return []string{fmt.Sprintf("nothing was selected: the source has no such key at revision %d, so nothing was "+
		"written", r.Revision)}
}

func leaseText(r *extract.Result) string {
	l := &r.Leases
	if l.Keys == 0 {
		return ""
	}
	how := map[string]string{
		"grant":  "granted again with the stored TTL",
		"detach": "the keys are written without a lease and stay",
		"skip":   "the keys are left out",
	}[l.Handling]
	if f := extract.Format(r.Format); l.Handling == "grant" && (f == extract.JSONL || f == extract.Backup) {
		how = "in the output, with ID and stored TTL"
	}
	s := plural.Of(l.Keys, "key", "keys") + " with " + plural.Of(l.Leases, "lease", "leases") + ": " + how
	if l.Unknown > 0 {
		s += "; " + plural.Of(l.Unknown, "key names", "keys name") + " a lease that the source does not hold and " +
			plural.Form(l.Unknown, "has", "have") + " never expired"
	}
	return s
}

func clusterPart(c *extract.ClusterCopy) render.Section {
	title := "cluster"
	if c.DryRun {
		title = "cluster (dry run: nothing was written)"
	}
	s := render.Section{Title: title, Pairs: [][2]string{
		{"cluster ID", fmt.Sprintf("%s at revision %d", c.ClusterID, c.Revision)},
		{"absent", fmt.Sprint(c.Absent)}, {"equal", fmt.Sprint(c.Equal)}, {"different", fmt.Sprint(c.Different)},
		{"written", count(c.Written)}, {"kept", count(c.Kept)}, {"leases granted", count(c.LeasesGranted)},
		{"conflicts", count(c.Conflicts)}, {"refused", count(c.Failed)},
	}}
	s.Lines = append(s.Lines, keyLines("differs: ", c.DifferentKeys)...)
	s.Lines = append(s.Lines, keyLines("changed meanwhile: ", c.ConflictKeys)...)
	for _, e := range c.Errors {
		s.Lines = append(s.Lines, "!! "+e)
	}
	return s
}

// shownKeys bounds the keys in a table; JSON has more.
const shownKeys = 20

func keyLines(prefix string, keys []check.Bytes) (out []string) {
	for i, k := range keys {
		if i == shownKeys {
			return append(out, fmt.Sprintf("… and %d more", len(keys)-i))
		}
		out = append(out, prefix+render.Quoted(k))
	}
	return out
}

// endings are what the length of a file says about it.
var endings = map[dumpdb.Ending]string{
	dumpdb.EndsCut:          "the file is shorter than its content",
	dumpdb.EndsInTrailer:    "the sha256 trailer is cut, so nothing proves the bytes of the file",
	dumpdb.EndsWithOthers:   "bytes follow the end of the content: the file changed after it was saved",
	dumpdb.EndsInsideOfPage: "the file does not end at the end of a page",
}

func lostPart(l *extract.Lost) render.Section {
	s := render.Section{Title: "not recovered"}
	if l.Trailer != "" {
		s.Lines = append(s.Lines, "!! the sha256 trailer is not that of the file: bytes were changed or lost since "+
			"it was saved, and a changed value shows nowhere else")
	}
	if says := endings[l.Ending]; says != "" {
		s.Lines = append(s.Lines, "!! "+says+": see etcd-medic verify")
	}
	for i, d := range l.Damage {
		if i == shownKeys {
			s.Lines = append(s.Lines, fmt.Sprintf("… and %d more damaged places", int64(len(l.Damage)-i)+l.MoreDamage))
			break
		}
		s.Lines = append(s.Lines, "!! "+d.Detail+span(d.FirstRevision, d.LastRevision))
	}
	if len(l.Damage) > 0 {
		s.Lines = append(s.Lines, "Records after damage are missing: a key may have a newer value there, or may "+
			"have been deleted there.")
	}
	if l.Undecodable > 0 {
		s.Lines = append(s.Lines, "!! "+plural.Of(l.Undecodable, "record of bucket key does",
			"records of bucket key do")+" not decode; etcd-medic dumpdb shows which")
	}
	if l.NoValueCount > 0 {
		s.Lines = append(s.Lines, fmt.Sprintf("%d deleted keys are only known by their tombstone: the value was "+
			"compacted away", l.NoValueCount))
	}
	s.Lines = append(s.Lines, keyLines("no value: ", l.NoValue)...)
	s.Lines = append(s.Lines, keyLines("not found: ", l.NotFound)...)
	return s
}

func span(first, last int64) string {
	switch {
	case first == 0 && last == 0:
		return ""
	case last == 0:
		return fmt.Sprintf(" (revisions from %d on)", first)
	case first == 0:
		return fmt.Sprintf(" (revisions up to %d)", last)
	}
	return fmt.Sprintf(" (revisions %d to %d)", first, last)
}

func leftOutPart(list []extract.LeftOut) render.Section {
	s := render.Section{Title: "left out"}
	for _, l := range list {
		s.Lines = append(s.Lines, fmt.Sprintf("%d: %s", l.Count, l.Reason))
		s.Lines = append(s.Lines, keyLines("  ", l.Keys)...)
	}
	return s
}

// restoreCommand returns the command that creates the data dirs of all members from a backup: made one by one, each
// would be a cluster by itself.
func restoreCommand(file string) shell.Command {
	return shell.Format("etcd-medic restore {} -o <NEW-DIR> --initial-cluster <MEMBERS>",
		shell.Operand(file))
}

// next returns the command that uses the output.
func (o *extractOptions) next(r *extract.Result) []shell.Command {
	if r.Log != nil && r.Log.FromStart {
		return []shell.Command{o.fromLog()}
	}
	if r.Output == "" {
		return nil
	}
	switch extract.Format(r.Format) {
	case extract.Put, extract.Txn:
		return []shell.Command{shell.Format("env ETCDCTL_ENDPOINTS=http://<HOST>:2379 sh {}", shell.Operand(r.Output))}
	case extract.YAML:
		return []shell.Command{shell.Format("kubectl apply --server-side --recursive --dry-run=server -f {}", r.Output)}
	case extract.Backup:
		return []shell.Command{restoreCommand(r.Output), shell.Format("etcd-medic verify {}", shell.Operand(r.Output))}
	}
	return nil
}

// fromLog is the command that makes a backup of the source's log.
func (o *extractOptions) fromLog() shell.Command {
	return shell.Format("etcd-medic rebuild --log {} --to last -o rebuilt.db", o.specs[0].Where)
}

// streamed reports on stderr what a stream to stdout lacks.
func (o *extractOptions) streamed(r *extract.Result) {
	s := lostPart(&r.Lost)
	lines := slices.Concat(s.Lines, leftOutPart(r.LeftOut).Lines, nothingText(r), r.Notes)
	for _, l := range lines {
		o.io.errorf("%s", l)
	}
	if r.Log != nil && r.Log.FromStart {
		o.io.errorf("this makes a backup of the log: %s", o.fromLog())
	}
	if l := leaseText(r); l != "" {
		o.io.errorf("leases: %s", l)
	}
}
