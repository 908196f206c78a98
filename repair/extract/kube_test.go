package extract_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/server/v3/lease"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/etcd-medic/etcd-medic/repair/extract"
)

func stored(t testing.TB, apiVersion, kind string, obj runtime.Object) []byte {
	t.Helper()
	obj.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	var out bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(obj, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// meta is as full as a server leaves it.
func meta(ns, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ns, Name: name, UID: "0b7f6f5c", ResourceVersion: "77", Generation: 3,
		CreationTimestamp: metav1.Unix(1700000000, 0),
		Labels:            map[string]string{"app": "web"},
		ManagedFields:     []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}}
}

func kubeDB(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	s, done := store(t, path)
	defer done()
	m := meta("shop", "web")
	m.OwnerReferences = []metav1.OwnerReference{{Kind: "Shop", Name: "main", UID: "dead"}}
	pod := corev1.PodSpec{NodeName: "node-7", Containers: []corev1.Container{{Name: "web", Image: "web:1",
		VolumeMounts: []corev1.VolumeMount{{Name: "kube-api-access-x", MountPath: "/var"},
			{Name: "data", MountPath: "/data"}}}},
		Volumes: []corev1.Volume{{Name: "kube-api-access-x"}, {Name: "data"}}}
	put := func(key string, v []byte) { s.Put([]byte(key), v, 0) }
	put("/registry/deployments/shop/web", stored(t, "apps/v1", "Deployment",
		&appsv1.Deployment{ObjectMeta: m, Status: appsv1.DeploymentStatus{Replicas: 3}}))
	put("/registry/services/specs/shop/web", stored(t, "v1", "Service",
		&corev1.Service{ObjectMeta: meta("shop", "web"),
			Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.7", ClusterIPs: []string{"10.0.0.7"}}}))
	put("/registry/services/specs/shop/headless",
		stored(t, "v1", "Service", &corev1.Service{ObjectMeta: meta("shop", "headless"),
			Spec: corev1.ServiceSpec{ClusterIP: "None"}}))
	put("/registry/pods/shop/web-1", stored(t, "v1", "Pod", &corev1.Pod{ObjectMeta: meta("shop", "web-1"), Spec: pod}))
	put("/registry/jobs/shop/once", stored(t, "batch/v1", "Job",
		&batchv1.Job{ObjectMeta: meta("shop", "once"), Spec: batchv1.JobSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"controller-uid": "x"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"controller-uid": "x",
				"mine": "1"}}}}}))
	put("/registry/secrets/other/db", stored(t, "v1", "Secret",
		&corev1.Secret{ObjectMeta: meta("other", "db"), Data: map[string][]byte{"password": []byte("hunter2")}}))
	put("/registry/minions/node-7", stored(t, "v1", "Node", &corev1.Node{ObjectMeta: meta("", "node-7")}))
	put("/registry/example.org/backups/shop/..%2fnightly",
		[]byte(`{"apiVersion":"example.org/v1","kind":"Backup","metadata":{"name":"../nightly","namespace":"shop","uid":"1"},"spec":{"keep":3}}`))
	put("/registry/secrets/shop/sealed", []byte("k8s:enc:aescbc:v1:key1:\x8f\x01"))
	put("/registry/namespaces/other", stored(t, "v1", "Namespace", &corev1.Namespace{ObjectMeta: meta("", "other")}))
	put("/registry/namespaces/sealed", []byte("k8s:enc:aescbc:v1:key1:\x8f\x02"))
	put("/registry/ranges/serviceips", []byte("plain"))
	put("/registry/configmaps/shop/gone", stored(t, "v1", "ConfigMap",
		&corev1.ConfigMap{ObjectMeta: meta("shop", "gone"), Data: map[string]string{"a": "b"}}))
	s.DeleteRange([]byte("/registry/configmaps/shop/gone"), nil)
	return path
}

func tree(t testing.TB, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, p)
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestManifests(t *testing.T) {
	path := kubeDB(t)
	out := filepath.Join(t.TempDir(), "out")
	res := run(t, path, extract.Options{Format: extract.YAML, Deleted: true, Out: out})
	want := []string{
		"_cluster/namespace/other.yaml", "_cluster/node/node-7.yaml", "_stored/%2Fregistry%2Fnamespaces%2Fsealed",
		"_stored/%2Fregistry%2Fsecrets%2Fshop%2Fsealed", "other/secret/db.yaml",
		"shop/backup.example.org/%2E.%2Fnightly.yaml",
		"shop/configmap/gone.yaml", "shop/deployment.apps/web.yaml", "shop/job.batch/once.yaml", "shop/pod/web-1.yaml",
		"shop/service/headless.yaml", "shop/service/web.yaml",
	}
	if d := cmp.Diff(want, tree(t, out)); d != "" {
		t.Error(d)
	}
	if len(res.LeftOut) != 2 || !res.Short() || res.Keys != 10 || res.DeletedKeys != 1 || len(res.Notes) != 1 {
		t.Errorf("%+v", res)
	}
	for file, want := range map[string]string{
		"shop/deployment.apps/web.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  labels:\n    app: " +
			"web\n  name: web\n  namespace: shop\nspec:\n  selector: null\n  strategy: {}\n  template:\n    " +
			"metadata: {}\n    spec:\n      containers: null\n",
		"shop/job.batch/once.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata:\n  labels:\n    app: web\n  " +
			"name: once\n  namespace: shop\nspec:\n  template:\n    metadata:\n      labels:\n        mine: \"1\"\n  " +
			"  spec:\n      containers: null\n",
		"shop/service/headless.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  labels:\n    app: web\n  name: " +
			"headless\n  namespace: shop\nspec:\n  clusterIP: None\n",
		"shop/service/web.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  labels:\n    app: web\n  name: " +
			"web\n  namespace: shop\nspec: {}\n",
		"shop/pod/web-1.yaml": "apiVersion: v1\nkind: Pod\nmetadata:\n  labels:\n    app: web\n  name: " +
			"web-1\n  namespace: shop\nspec:\n  containers:\n  - image: web:1\n    name: web\n    resources: {}\n    " +
			"volumeMounts:\n    - mountPath: /data\n      name: data\n  volumes:\n  - name: data\n",
		"other/secret/db.yaml": "apiVersion: v1\ndata:\n  password: aHVudGVyMg==\nkind: Secret\nmetadata:\n " +
			" labels:\n    app: web\n  name: db\n  namespace: other\n",
	} {
		b, err := os.ReadFile(filepath.Join(out, file))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, string(b)); d != "" {
			t.Errorf("%s (-want +got):\n%s", file, d)
		}
		var obj map[string]any
		if err := yaml.Unmarshal(b, &obj); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if b, _ := os.ReadFile(filepath.Join(out, "_stored", "%2Fregistry%2Fsecrets%2Fshop%2Fsealed")); !bytes.HasPrefix(b,
		[]byte("k8s:enc:")) {
		t.Errorf("the stored bytes are %q", b)
	}
}

// TestObjects selects by namespace, kind and name, also what was deleted or cannot be decoded.
func TestObjects(t *testing.T) {
	path := kubeDB(t)
	for name, c := range map[string]struct {
		sel  extract.Selection
		want string
	}{
		"namespace":        {extract.Selection{Namespace: "other"}, "namespaces/other secrets/other/db"},
		"sealed namespace": {extract.Selection{Namespace: "sealed"}, "namespaces/sealed"},
		"kind of it":       {extract.Selection{Namespace: "other", Kind: "Secret"}, "secrets/other/db"},
		"namespace itself": {extract.Selection{Namespace: "other", Kind: "Namespace"}, "namespaces/other"},
		"name in it":       {extract.Selection{Namespace: "other", Name: "db"}, "secrets/other/db"},
		"kind": {extract.Selection{Kind: "service"}, "services/specs/shop/headless " +
			"services/specs/shop/web"},
		"kind with group": {extract.Selection{Kind: "Deployment.apps"}, "deployments/shop/web"},
		"wrong group":     {extract.Selection{Kind: "Deployment.extensions"}, ""},
		"node":            {extract.Selection{Kind: "Node"}, "minions/node-7"},
		"encrypted":       {extract.Selection{Kind: "Secret", Namespace: "shop"}, "secrets/shop/sealed"},
		"deleted":         {extract.Selection{Kind: "ConfigMap", Name: "gone"}, "configmaps/shop/gone"},
		"name": {extract.Selection{Name: "web", Prefixes: [][]byte{[]byte("/registry/services/")}},
			"services/specs/shop/web"},
		"prefix and range": {extract.Selection{Prefixes: [][]byte{[]byte("/registry/minions/")},
			From: []byte("/registry/secrets/"), To: []byte("/registry/secrets/p")}, "minions/node-7 secrets/other/db"},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			res := run(t, path, extract.Options{Format: extract.JSONL, Deleted: true, Select: c.sel, Out: out})
			var got []string
			if !res.Empty() {
				for _, l := range lines(t, out) {
					got = append(got, strings.TrimPrefix(string(l.Key), "/registry/"))
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestManifestsOfOneName: two keys with an object of one name are two files; leases are noted, since a manifest has
// none. Stored bytes alone are a result, and nothing at all is no folder.
func TestManifestsOfOneName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s, done := store(t, path)
	put := func(key string, value []byte, id lease.LeaseID) { s.Put([]byte(key), value, id) }
	for _, prefix := range []string{"a", "b", "c"} {
		put("/"+prefix+"/events/shop/e", stored(t, "v1", "Event", &corev1.Event{ObjectMeta: meta("shop", "e")}), 0x77)
	}
	put("/plain", []byte("no object"), 0)
	put("/sealed", []byte("k8s:enc:aescbc:v1:key1:\x8f\x01"), 0)
	done()
	grant(t, path, 0x77, 500)
	for name, c := range map[string]struct {
		prefix, files string
		notes         int
		count         int64
	}{
		"all":    {"/", "_stored/%2Fsealed shop/event/e.yaml shop/event/e~2.yaml shop/event/e~3.yaml", 1, 4},
		"stored": {"/sealed", "_stored/%2Fsealed", 0, 1},
		"no":     {"/plain", "", 0, 0},
	} {
		out := filepath.Join(t.TempDir(), "out")
		res := run(t, path, extract.Options{Format: extract.YAML, Out: out,
			Select: extract.Selection{Prefixes: [][]byte{[]byte(c.prefix)}}})
		if _, err := os.Stat(out); (err == nil) != (c.files != "") {
			t.Fatalf("%s: %v", name, err)
		}
		if c.files != "" {
			if got := strings.Join(tree(t, out), " "); got != c.files {
				t.Errorf("%s: %s", name, got)
			}
		}
		if len(res.Notes) != c.notes || res.Files != c.count || len(res.LeftOut) == 0 {
			t.Errorf("%s: %+v", name, res)
		}
	}
}
