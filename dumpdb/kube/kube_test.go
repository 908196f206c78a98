package kube_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcd-medic/etcd-medic/dumpdb/kube"
)

// stored encodes an object as an apiserver stores it, with the serializer that apiservers use.
func stored(t testing.TB, apiVersion, kind string, obj runtime.Object) []byte {
	t.Helper()
	obj.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	var out bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(obj, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var created = metav1.NewTime(time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC))

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "0b7f6f5c-4f4e-4c5f-9a5e-0123456789ab",
		CreationTimestamp: created}
}

func deployment() *appsv1.Deployment {
	three, surge := int32(3), intstr.FromString("25%")
	pod := corev1.PodSpec{Containers: []corev1.Container{{
		Name: "web", Image: "registry/web:1.2",
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("250m"),
			"memory": resource.MustParse("1Gi")}},
	}}}
	return &appsv1.Deployment{ObjectMeta: meta("shop", "web"), Spec: appsv1.DeploymentSpec{
		Replicas: &three,
		Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge}},
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
			Spec: pod},
	}}
}

func secret() *corev1.Secret {
	m := meta("shop", "db-password")
	m.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"password":"aHVudGVyMg=="}}`}
	return &corev1.Secret{ObjectMeta: m, Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{"password": []byte("hunter2"), "user": []byte("shop")}}
}

func lease() *coordinationv1.Lease {
	holder, renewed := "scheduler-1", metav1.NewMicroTime(created.Time)
	return &coordinationv1.Lease{ObjectMeta: meta("kube-system", "kube-scheduler"),
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed}}
}

const customResource = `{"apiVersion":"example.org/v1", "kind":"Backup",
  "metadata":{"name":"nightly","namespace":"shop"}, "spec":{"at":"02:30", "keep":12345678901234567890, "ratio":1.50}}
`

// values are the stored forms that the goldens in testdata show.
func values(t testing.TB) map[string][]byte {
	deployed := stored(t, "apps/v1", "Deployment", deployment())
	list := &corev1.SecretList{Items: []corev1.Secret{*secret()}}
	jsonSecret, err := json.Marshal(stamped(secret(), "v1", "Secret"))
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"deployment":           deployed,
		"deployment-truncated": deployed[:len(deployed)-9],
		"envelope-alone":       deployed[:4],
		"configmap": stored(t, "v1", "ConfigMap",
			&corev1.ConfigMap{ObjectMeta: meta("shop", "web"), Data: map[string]string{"a": "1\n2\n"},
				BinaryData: map[string][]byte{"b": {0, 0xff}}}),
		"secret":             stored(t, "v1", "Secret", secret()),
		"secret-list":        stored(t, "v1", "SecretList", list),
		"secret-json":        jsonSecret,
		"secret-inside-list": []byte(`{"kind":"List","apiVersion":"v1","items":[{"kind":"\u0053ecret","apiVersion":"v1","data":{"a":"aHVudGVyMg=="}},{"kind":"ConfigMap","data":{"a":"shown"}}]}`),
		"lease":              stored(t, "coordination.k8s.io/v1", "Lease", lease()),
		"custom-resource":    []byte(customResource),
		"encrypted":          []byte("k8s:enc:aescbc:v1:key1:\x8f\x01hunter2"),
		"encrypted-kms":      []byte("k8s:enc:kms:v2:vault:\x00\x01"),
		"encrypted-unnamed":  []byte("k8s:enc:"),
		"unknown-kind": bytes.Replace(stored(t, "v1", "ConfigMap",
			&corev1.ConfigMap{ObjectMeta: meta("shop", "later")}), []byte("ConfigMap"), []byte("ConfigNew"), 1),
		"bad-api-version": bytes.Replace(stored(t, "apps/v1", "Deployment", deployment()), []byte("apps/v1"),
			[]byte("a/b/c/d"), 1),
	}
}

func stamped(obj runtime.Object, apiVersion, kind string) runtime.Object {
	obj.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	return obj
}

func show(t testing.TB, value []byte, o kube.Options) string {
	t.Helper()
	obj, ok := kube.Decode(value, o)
	if !ok {
		return "not of Kubernetes\n"
	}
	s := fmt.Sprintf("%s %q %q %q %q %q\n", obj.Encoding, obj.APIVersion, obj.Kind, obj.Namespace, obj.Name,
		obj.Provider)
	if obj.Err != nil {
		return s + "error: " + obj.Err.Error() + "\n"
	}
	text, err := obj.YAML()
	if err != nil {
		t.Fatal(err)
	}
	return s + string(obj.JSON) + "\n---\n" + string(text)
}

// TestGolden holds what is shown of each stored form against testdata/NAME.golden. ETCD_MEDIC_REWRITE=1 writes them.
func TestGolden(t *testing.T) {
	for name, value := range values(t) {
		t.Run(name, func(t *testing.T) {
			got := show(t, value, kube.Options{Digest: func(data []byte) string {
				return fmt.Sprintf("of %d bytes",
					len(data))
			}})
			file := filepath.Join("testdata", name+".golden")
			if os.Getenv("ETCD_MEDIC_REWRITE") != "" {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Error(d)
			}
			for _, hidden := range []string{"hunter2", "aHVudGVyMg"} {
				if strings.Contains(got, hidden) {
					t.Errorf("shows the secret %q", hidden)
				}
			}
		})
	}
}

// TestSecretsWithoutDigest: without a function for digests the length alone stands for what is hidden.
func TestSecretsWithoutDigest(t *testing.T) {
	got := show(t, values(t)["secret"], kube.Options{})
	if !strings.Contains(got, `"password":{"len":7}`) || strings.Contains(got, "digest") {
		t.Errorf("%s", got)
	}
}

func TestSecretsShown(t *testing.T) {
	v := values(t)
	for _, name := range []string{"secret", "secret-list", "secret-json", "secret-inside-list"} {
		if got := show(t, v[name], kube.Options{Secrets: true}); !strings.Contains(got, "aHVudGVyMg==") {
			t.Errorf("%s: the data is not shown when asked for:\n%s", name, got)
		}
	}
}

// TestRoundTrip decodes the JSON shown back into the type it was stored from.
func TestRoundTrip(t *testing.T) {
	var got appsv1.Deployment
	obj, ok := kube.Decode(stored(t, "apps/v1", "Deployment", deployment()), kube.Options{})
	if !ok || obj.Err != nil {
		t.Fatal(ok, obj.Err)
	}
	if err := json.Unmarshal(obj.JSON, &got); err != nil {
		t.Fatal(err)
	}
	want := stamped(deployment(), "apps/v1", "Deployment")
	if !bytes.Equal(stored(t, "apps/v1", "Deployment", want), stored(t, "apps/v1", "Deployment", &got)) {
		t.Error("the object shown is not the one stored")
	}
}

// TestEveryBuiltinKind decodes an empty object of each registered kind that can be stored.
func TestEveryBuiltinKind(t *testing.T) {
	groups := map[string]bool{}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		obj, err := scheme.Scheme.New(gvk)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := obj.(metav1.ObjectMetaAccessor); !ok {
			continue // options and events of a watch are never stored
		}
		apiVersion := gvk.GroupVersion().String()
		got, ok := kube.Decode(stored(t, apiVersion, gvk.Kind, obj), kube.Options{})
		switch {
		case !ok || got.Err != nil:
			t.Errorf("%v: %v %v", gvk, ok, got.Err)
		case got.Kind != gvk.Kind || got.APIVersion != apiVersion ||
			!bytes.Contains(got.JSON, []byte(`"kind":"`+gvk.Kind+`"`)):
			t.Errorf("%v: %s %s %s", gvk, got.APIVersion, got.Kind, got.JSON)
		}
		groups[gvk.Group] = true
	}
	if len(groups) < 20 || !groups[""] || !groups["apps"] || !groups["rbac.authorization.k8s.io"] {
		t.Errorf("only the groups %v were tried", groups)
	}
}

func TestPlainValues(t *testing.T) {
	for _, v := range []string{"", "bar", "{", `{"a":1}`, "k8s", "k8s:", "{\"kind\":\"A\"}"} {
		if obj, ok := kube.Decode([]byte(v), kube.Options{}); ok {
			t.Errorf("%q is taken for %+v", v, obj)
		}
	}
}

// TestHostile tries values that would take much memory or time if decoded without bounds.
func TestHostile(t *testing.T) {
	pods := bytes.Repeat([]byte{0x12, 0}, 1<<20) // PodList.items: two bytes for a whole Pod
	quantity := stored(t, "v1", "Node", &corev1.Node{Status: corev1.NodeStatus{Capacity: corev1.ResourceList{"cpu": resource.MustParse("123456789012")}}})
	for name, c := range map[string]struct {
		value []byte
		want  error
	}{
		"many empty fields": {envelope("v1", "PodList", pods), kube.ErrTooLarge},
		"after an overflow": {envelope("v1", "PodList", slices.Concat([]byte{0x78}, bytes.Repeat([]byte{0xff}, 9),
			[]byte{0x7f}, pods)), kube.ErrTooLarge},
		"after a large tag": {envelope("v1", "PodList", slices.Concat(protowire.AppendVarint(nil, 1<<40|15<<3), []byte{0},
			pods)), kube.ErrTooLarge},
		"after a group": {envelope("v1", "PodList", slices.Concat([]byte{0x7b, 0x10, 1, 0x74}, pods)),
			kube.ErrTooLarge},
		"deep JSON": {[]byte(`{"apiVersion":"v1","kind":"A","a":` +
			strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}"), kube.ErrTooLarge},
		"large JSON": {[]byte(`{"apiVersion":"v1","kind":"A","a":"` + strings.Repeat("a", 17<<20) + `"}`),
			kube.ErrTooLarge},
		"large protobuf": {envelope("v1", "ConfigMap", make([]byte, 17<<20)), kube.ErrTooLarge},
		"cut message":    {envelope("v1", "Pod", []byte{0x0a, 0x7f}), kube.ErrDamaged},
		"bad quantity": {bytes.Replace(quantity, []byte("123456789012"), []byte("1-2-3-4-5-6-"), 1),
			kube.ErrDamaged},
		"endless exponent": {bytes.Replace(quantity, []byte("123456789012"), []byte("1e0999999999"), 1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			obj, ok := kube.Decode(c.value, kube.Options{})
			if !ok || c.want != nil && !errors.Is(obj.Err, c.want) {
				t.Errorf("%v, %v", ok, obj.Err)
			}
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// envelope is runtime.Unknown written by hand, for objects that no encoder would write.
func envelope(apiVersion, kind string, raw []byte) []byte {
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	b, err := u.Marshal()
	if err != nil {
		return nil
	}
	return append([]byte("k8s\x00"), b...)
}

func FuzzDecode(f *testing.F) {
	for _, v := range values(f) {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		obj, ok := kube.Decode(value, kube.Options{})
		if !ok || obj.Err != nil {
			return
		}
		if !json.Valid(obj.JSON) {
			t.Errorf("no JSON: %q", obj.JSON)
		}
		if _, err := obj.YAML(); err != nil && !errors.Is(err, kube.ErrDamaged) {
			t.Error(err)
		}
	})
}
