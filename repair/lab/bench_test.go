package lab_test

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/lab"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

// BenchmarkRehearse rehearses the repair of one member of three whose databases hold 500 MB.
func BenchmarkRehearse(b *testing.B) {
	dir := b.TempDir()
	c, err := lab.Start(b.Context(), lab.Options{Dir: filepath.Join(dir, "lab"), Server: node.Bundled()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	cli, err := c.Client(0)
	if err != nil {
		b.Fatal(err)
	}
	value := make([]byte, 500_000)
	for i := range 1000 {
		_, _ = rand.Read(value) // never fails
		if _, err := cli.Put(b.Context(), fmt.Sprintf("/big/%04d", i), string(value)); err != nil {
			b.Fatal(err)
		}
	}
	if err := c.RaiseAuth(b.Context(), 1, 9); err != nil {
		b.Fatal(err)
	}
	if _, err := c.Write(b.Context(), 0, "/after/", 20); err != nil {
		b.Fatal(err)
	}
	copies := filepath.Join(dir, "copies")
	if err := c.Copies(b.Context(), copies); err != nil {
		b.Fatal(err)
	}
	p, err := plan.New(b.Context(), []evidence.Spec{{Where: copies}}, try.In(""), plan.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		file := filepath.Join(b.TempDir(), "plan.yaml")
		if err := p.Save(file); err != nil {
			b.Fatal(err)
		}
		out, err := run.Rehearse(b.Context(), file, run.Options{})
		if out != nil {
			for _, s := range out.Steps {
				b.Logf("%-28s %-12s %6.2fs %s", s.ID, s.State, s.Seconds, s.Detail)
			}
		}
		if err != nil || !out.Reached {
			b.Fatalf("%v: %+v", err, out)
		}
		b.ReportMetric(out.Seconds, "s/rehearsal")
		b.ReportMetric(float64(out.Bytes)/1e6, "MB")
	}
}
