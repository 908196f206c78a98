package render

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// BackupRun is the data of one backup for a metrics file, in addition to its report.
type BackupRun struct {
	Report *compare.Report
	// Took is how long the verification lasted, Modified the modification time of the file; zero if unknown.
	Took     time.Duration
	Modified time.Time
	// Drilled is true if a drill was requested.
	Drilled bool
}

// metric is one family of samples. value returns false if a backup has no such sample.
type metric struct {
	name, help string
	value      func(*BackupRun) (float64, bool)
}

// backupMetrics are in output order. To add one, add a line here.
var backupMetrics = []metric{
	{"healthy", "1 when no finding is an error: the backup can be relied on; 0 when it is damaged, missing, or could " +
		"not be judged (see class).", func(b *BackupRun) (float64, bool) {
		return truth(b.Report.Verdict.Health == check.Healthy), true
	}},
	{"size_bytes", "Size of the file.", func(b *BackupRun) (float64, bool) {
		if b.Report.Backup == nil {
			return 0, false
		}
		return float64(b.Report.Backup.Size), true
	}},
	{"modified_timestamp_seconds", "Modification time of the file, seconds since 1970.",
		func(b *BackupRun) (float64, bool) {
			return float64(b.Modified.UnixMilli()) / 1e3, !b.Modified.IsZero()
		}},
	{"revision", "Current revision of the backup. Absent where damage may hide the newest records.",
		func(b *BackupRun) (float64, bool) {
			return dbNumber(b, func(d *evidence.DBFacts) *int64 { return known(d.CurrentRevision, d.EndUnread) })
		}},
	{"compact_revision", "Compact revision of the backup, -1 when it was never compacted.",
		func(b *BackupRun) (float64, bool) {
			return dbNumber(b, func(d *evidence.DBFacts) *int64 { return d.CompactRevision })
		}},
	{"keys", "Keys that live in the backup. Absent where damage hides records.",
		func(b *BackupRun) (float64, bool) {
			return dbNumber(b, func(d *evidence.DBFacts) *int64 { return known(d.Keys, d.Partial) })
		}},
	{"findings", "Findings of severity error or critical.", func(b *BackupRun) (float64, bool) {
		n := 0
		for _, f := range b.Report.Findings {
			if f.Severity.Rank() >= check.Error.Rank() {
				n++
			}
		}
		return float64(n), true
	}},
	{"verify_seconds", "How long the verification took.", func(b *BackupRun) (float64, bool) {
		return b.Took.Seconds(),
			true
	}},
}

// dbNumber returns a number of the database, false if it does not open.
func dbNumber(b *BackupRun, of func(*evidence.DBFacts) *int64) (float64, bool) {
	if len(b.Report.Members) == 0 || b.Report.Members[0].DB == nil {
		return 0, false
	}
	n := of(b.Report.Members[0].DB)
	if n == nil {
		return 0, false
	}
	return float64(*n), true
}

// known is a number of which damage hides nothing, otherwise nil.
func known(n *int64, hidden bool) *int64 {
	if hidden {
		return nil
	}
	return n
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

const metricPrefix = "etcd_medic_backup_"

// sampler writes families and samples. It writes each series once, since a file with a duplicate is rejected.
type sampler struct {
	out  *bufio.Writer
	seen map[string]bool
}

func (s sampler) head(name, help string) {
	_, _ = fmt.Fprintf(s.out, "# HELP %s%s %s\n# TYPE %s%s gauge\n", metricPrefix, name, help, metricPrefix, name)
}

// sample writes one sample; labels are names and values in turn.
func (s sampler) sample(name string, v float64, labels ...string) {
	series := metricPrefix + name
	for i := 0; i+1 < len(labels); i += 2 {
		open := ","
		if i == 0 {
			open = "{"
		}
		series += open + labels[i] + "=" + labelText(labels[i+1])
	}
	if len(labels) > 0 {
		series += "}"
	}
	if s.seen[series] {
		return
	}
	s.seen[series] = true
	_, _ = fmt.Fprintf(s.out, "%s %s\n", series, number(v))
}

// BackupMetrics writes the reports in the text format of Prometheus, for the textfile collector of node_exporter.
func BackupMetrics(w io.Writer, runs []BackupRun, now time.Time) error {
	put := sampler{bufio.NewWriter(w), map[string]bool{}}
	names := seriesNames(runs)
	for _, m := range backupMetrics {
		put.head(m.name, m.help)
		for i := range runs {
			if v, ok := m.value(&runs[i]); ok {
				put.sample(m.name, v, "backup", names[i])
			}
		}
	}
	put.head("class", "1 for the class of the verdict.")
	for i := range runs {
		put.sample("class", 1, "backup", names[i], "class", string(runs[i].Report.Verdict.Class))
	}
	put.head("layer", "Verdict of each layer: 1 holds, 0 violated, -1 not checked.")
	for i := range runs {
		if b := runs[i].Report.Backup; b != nil {
			for _, l := range b.Layers {
				put.sample("layer", layerValue(l.Outcome), "backup", names[i], "layer", l.Name)
			}
		}
	}
	againstMetrics(runs, names, put)
	drillMetrics(runs, names, put)
	put.head("last_run_timestamp_seconds", "When the backups were verified, seconds since 1970.")
	put.sample("last_run_timestamp_seconds", float64(now.UnixMilli())/1e3)
	return put.out.Flush()
}

// seriesNames returns unique labels for the backups, even if the format cannot represent the bytes in which two differ.
func seriesNames(runs []BackupRun) []string {
	names, used := make([]string, len(runs)), map[string]bool{}
	for i := range runs {
		base := strings.ToValidUTF8(backup.Name(runs[i].Report), "?")
		name := base
		for n := 2; used[name]; n++ {
			name = fmt.Sprintf("%s#%d", base, n)
		}
		used[name], names[i] = true, name
	}
	return names
}

// againstMetrics writes how far each backup lags behind the sources it was compared with.
func againstMetrics(runs []BackupRun, names []string, put sampler) {
	each := func(name, help string, value func(*backup.Compared) (float64, bool)) {
		started := false
		for i := range runs {
			b := runs[i].Report.Backup
			if b == nil {
				continue
			}
			a, ok := b.Against.(*backup.Against)
			for n := 0; ok && n < len(a.Compared); n++ {
				v, known := value(&a.Compared[n])
				if !known {
					continue
				}
				if !started {
					put.head(name, help)
					started = true
				}
				put.sample(name, v, "backup", names[i], "source", a.Compared[n].Source)
			}
		}
	}
	each("against_ok", "1 when the backup and the source are of one history, 0 when they are not or could not be "+
		"compared.", func(c *backup.Compared) (float64, bool) {
		return truth(c.SameHistory == check.Holds), true
	})
	each("revisions_behind", "Revisions that the source is ahead of the backup.",
		func(c *backup.Compared) (float64, bool) {
			return float64(c.RevisionsBehind), c.Counted
		})
	each("keys_behind", "Keys that a restore would leave otherwise than the source has them.",
		func(c *backup.Compared) (float64, bool) {
			return float64(c.Missing + c.Differ + c.Extra), c.Counted
		})
}

// drillMetrics writes the metrics of a run with drills. An unreadable backup has no successful drill.
func drillMetrics(runs []BackupRun, names []string, put sampler) {
	var asked, held []int
	for i := range runs {
		if !runs[i].Drilled {
			continue
		}
		asked = append(asked, i)
		if d := drillOf(&runs[i]); d != nil && d.Inconclusive == "" {
			held = append(held, i)
		}
	}
	if len(asked) == 0 {
		return
	}
	put.head("drill_ok", "1 when a restored server answered what the backup holds and took a write; 0 when it did "+
		"not or the drill could not run.")
	for _, i := range asked {
		d := drillOf(&runs[i])
		put.sample("drill_ok", truth(d != nil && d.OK), "backup", names[i])
	}
	if len(held) == 0 {
		return
	}
	put.head("drill_equal", "1 when a restored server answered what the backup holds.")
	for _, i := range held {
		d := drillOf(&runs[i])
		put.sample("drill_equal", truth(d.Equal.Certain()), "backup", names[i])
	}
	put.head("drill_seconds", "How long the drill took.")
	for _, i := range held {
		put.sample("drill_seconds", drillOf(&runs[i]).Seconds, "backup", names[i])
	}
}

func drillOf(b *BackupRun) *backup.Drill {
	if b.Report.Backup == nil {
		return nil
	}
	d, _ := b.Report.Backup.Drill.(*backup.Drill)
	return d
}

func layerValue(o check.Outcome) float64 {
	switch o {
	case check.Holds:
		return 1
	case check.Violated:
		return 0
	}
	return -1
}

// labelText quotes a label value: it escapes backslash, quote and line feed, and characters that a terminal interprets.
func labelText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(clean(strings.ToValidUTF8(s, "?"))) + `"`
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
