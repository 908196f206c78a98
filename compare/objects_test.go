package compare_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestObjectsAreNamed: a write of an object of Kubernetes that one member lacks is shown with kind, namespace, name and
// manager in findings, in the timeline, in compare and in history, and no part of its content is.
func TestObjectsAreNamed(t *testing.T) {
	const key, content = "/registry/pods/prod/web-0", "not-for-reports"
	root := t.TempDir()
	s := clustertest.NewScript("3.5.0")
	s.Add(clustertest.As("", 0, clustertest.PutRequest(key,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"prod",`+
			`"managedFields":[{"manager":"kube-scheduler","time":"2026-01-02T03:04:05Z"},`+
			`{"manager":"kubelet","time":"2026-01-02T03:04:06Z"}]},"spec":{"x":"`+content+`"}}`, 0), 2))
	for range 9 {
		s.Add(clustertest.As("", 0, clustertest.PutRequest("/later", "x", 0)))
	}
	s.Write(t, root)
	evidencetest.Unchanged(t, root)
	var specs []evidence.Spec
	for _, n := range []string{"node1", "node2", "node3"} {
		specs = append(specs, evidence.Spec{Name: n, Where: root + "/" + n})
	}
	want := evidence.Object{Kind: "Pod", Namespace: "prod", Name: "web-0", Manager: "kubelet"}

	r, err := compare.Diagnose(t.Context(), specs, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for i := range r.Findings {
		for _, e := range r.Findings[i].Evidence {
			if string(e.Key) == key {
				if named++; e.Object == nil || *e.Object != want {
					t.Errorf("%s: %+v", r.Findings[i].ID, e.Object)
				}
			} else if e.Object != nil {
				t.Errorf("%s: %s is no object", r.Findings[i].ID, e.Key)
			}
		}
	}
	if named == 0 {
		t.Error("no finding names the key")
	}
	moments := 0
	for _, m := range r.Timeline {
		if m.Kind == "divergence" {
			moments++
			if len(m.Objects) != 1 || m.Objects[0] != want {
				t.Errorf("timeline: %+v", m)
			}
		}
	}
	if moments == 0 {
		t.Error("no divergence on the timeline")
	}
	c, err := compare.Compare(t.Context(), specs, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, b := range c.Buckets {
		for _, row := range b.Rows {
			if string(row.Key) == key {
				if rows++; row.Object == nil || *row.Object != want {
					t.Errorf("compare: %+v", row.Object)
				}
			}
		}
	}
	if rows == 0 {
		t.Error("compare has no row of the key")
	}
	h, err := compare.History(t.Context(), []byte(key), specs, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := h.Records["node1"]; len(got) != 1 || got[0].Object == nil || *got[0].Object != want {
		t.Errorf("history: %+v", got)
	}
	for _, doc := range []any{r, c, h} {
		b, err := json.Marshal(doc)
		if err != nil || strings.Contains(string(b), content) || !strings.Contains(string(b), `"manager":"kubelet"`) {
			t.Errorf("%T: content or no manager, %v", doc, err)
		}
	}
}

// TestObjectText: as people write it.
func TestObjectText(t *testing.T) {
	for want, o := range map[string]evidence.Object{
		"Pod prod/web-0, written by kubelet": {Kind: "Pod", Namespace: "prod", Name: "web-0", Manager: "kubelet"},
		"Namespace prod":                     {Kind: "Namespace", Name: "prod"},
		"Status":                             {Kind: "Status"},
	} {
		if got := o.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
