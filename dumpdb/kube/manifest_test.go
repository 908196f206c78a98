package kube_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumpdb/kube"
)

// TestManifest: a manifest has what a user wrote, not what the server, a controller or an allocator filled in.
func TestManifest(t *testing.T) {
	for _, tc := range []struct {
		name, stored, yaml string
		stripped           []string
		owners             int
	}{
		{"what every object has", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","uid":"u",` +
			`"resourceVersion":"7","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"x","mine":"y"},` +
			`"ownerReferences":[{"uid":"o"},{"uid":"p"}]},"data":{"n":12345678901234567890},"status":{"a":1}}`,
			`apiVersion: v1
data:
  "n": 12345678901234567890
kind: ConfigMap
metadata:
  annotations:
    mine: "y"
  name: a
`, []string{"status", "metadata.uid", "metadata.resourceVersion",
				"metadata.annotations.kubectl.kubernetes.io/last-applied-configuration"}, 2},
		{"annotations and labels that become empty", `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a",` +
			`"annotations":{"deployment.kubernetes.io/revision":"1"},"labels":{"controller-uid":"u"}},` +
			`"spec":{"selector":{"a":"b"},"template":{"metadata":{"labels":{"controller-uid":"u"}}}}}`,
			`apiVersion: batch/v1
kind: Job
metadata:
  name: a
spec:
  template:
    metadata: {}
`, []string{"metadata.annotations.deployment.kubernetes.io/revision", "spec.selector",
				"spec.template.metadata.labels.controller-uid", "metadata.labels.controller-uid"}, 0},
		{"a spec that becomes empty", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"},` +
			`"spec":{"finalizers":["kubernetes"]}}`,
			"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\nspec: {}\n", []string{"spec.finalizers"}, 0},
		{"a job whose selector the user chose", `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},` +
			`"spec":{"manualSelector":true,"selector":{"a":"b"},` +
			`"template":{"metadata":{"labels":{"controller-uid":"u"}}}}}`,
			`apiVersion: batch/v1
kind: Job
metadata:
  name: a
spec:
  manualSelector: true
  selector:
    a: b
  template:
    metadata: {}
`, []string{"spec.template.metadata.labels.controller-uid"}, 0},
		{"a service", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"clusterIP":"10.0.0.1",` +
			`"clusterIPs":["10.0.0.1"],"healthCheckNodePort":30000,"type":"ClusterIP"}}`,
			"apiVersion: v1\nkind: Service\nmetadata:\n  name: a\nspec:\n  type: ClusterIP\n",
			[]string{"spec.clusterIP", "spec.clusterIPs", "spec.healthCheckNodePort"}, 0},
		{"a headless service",
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"clusterIP":"None",` +
				`"clusterIPs":["None"],"healthCheckNodePort":30000}}`,
			"apiVersion: v1\nkind: Service\nmetadata:\n  name: a\nspec:\n  clusterIP: None\n  clusterIPs:\n  - None\n",
			[]string{"spec.healthCheckNodePort"}, 0},
		{"a field that is that of services only",
			`{"apiVersion":"example.org/v1","kind":"Backup","metadata":{"name":"a"},` +
				`"spec":{"clusterIP":"10.0.0.1","nodeName":"n","volumes":[{"name":"kube-api-access-x"}]}}`,
			`apiVersion: example.org/v1
kind: Backup
metadata:
  name: a
spec:
  clusterIP: 10.0.0.1
  nodeName: "n"
  volumes:
  - name: kube-api-access-x
`, nil, 0},
		{"a pod with a token and a volume", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{` +
			`"nodeName":"n","volumes":[{"name":"data"},{"name":"kube-api-access-x"}],` +
			`"ephemeralContainers":[{"name":"e"}],` +
			`"initContainers":[{"name":"i","volumeMounts":[{"name":"kube-api-access-x"}]}],` +
			`"containers":[{"name":"c","volumeMounts":[{"name":"data"},{"name":"kube-api-access-x"}]},"damaged"]}}`,
			`apiVersion: v1
kind: Pod
metadata:
  name: a
spec:
  containers:
  - name: c
    volumeMounts:
    - name: data
  - damaged
  initContainers:
  - name: i
  volumes:
  - name: data
`, []string{"spec.nodeName", "spec.volumes[kube-api-access-*]"}, 0},
		{"a pod without a token", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{` +
			`"volumes":[{"name":"data"}]}}`,
			"apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n  volumes:\n  - name: data\n", nil, 0},
		{"a pod without a spec", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":"damaged"}`,
			"apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec: damaged\n", nil, 0},
		{"parts that are no maps",
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","annotations":[]},"spec":[]}`,
			"apiVersion: v1\nkind: Service\nmetadata:\n  annotations: []\n  name: a\nspec: []\n", nil, 0},
	} {
		m, ok := kube.NewManifest([]byte(tc.stored))
		if !ok || m.Err != nil || string(m.YAML) != tc.yaml {
			t.Errorf("%s: %v %v\n%s\nwant\n%s", tc.name, ok, m.Err, m.YAML, tc.yaml)
		}
		if !slices.Equal(m.Stripped, tc.stripped) || m.Owners != tc.owners {
			t.Errorf("%s: stripped %q, %d owners; want %q, %d", tc.name, m.Stripped, m.Owners, tc.stripped, tc.owners)
		}
	}
}

// TestManifestReason: the reason is the same for all objects that fail alike.
func TestManifestReason(t *testing.T) {
	for what, want := range map[string]string{"encrypted-kms": kube.ErrEncrypted.Error() + " by kms",
		"encrypted":         kube.ErrEncrypted.Error() + " by aescbc",
		"encrypted-unnamed": kube.ErrEncrypted.Error() + " by ",
		"unknown-kind":      kube.ErrUnknownKind.Error(), "deployment-truncated": kube.ErrDamaged.Error()} {
		m, ok := kube.NewManifest(values(t)[what])
		if !ok || m.Err == nil || m.YAML != nil || !strings.HasPrefix(m.Reason(), want) ||
			want[len(want)-1] != ' ' && m.Reason() != want {
			t.Errorf("%s: %v %q %v, want %q", what, ok, m.Reason(), m.Err, want)
		}
	}
	if m, ok := kube.NewManifest([]byte("plain")); ok || m.YAML != nil {
		t.Errorf("a plain value is a manifest: %+v", m)
	}
	m, ok := kube.NewManifest(values(t)["secret"])
	if !ok || !strings.Contains(string(m.YAML), "aHVudGVyMg==") {
		t.Errorf("the data of a Secret is not in its manifest: %s", m.YAML)
	}
}
