package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// Manifest is an object as a file for kubectl apply.
type Manifest struct {
	dumpdb.KubeObject
	// YAML is the text; nil if Err is set.
	YAML []byte
	// Stripped are the paths of the fields that were removed because the server sets them.
	Stripped []string
	// Owners counts the removed owner references. They name owners by UID, and the garbage collector deletes an object
	// whose owners do not exist.
	Owners int
	Err    error
}

// NewManifest turns a value of bucket key into a manifest; ok is false if the value is not a Kubernetes object. The
// manifest contains the data of Secrets, since a Secret is useless without it. Fields that the server sets are removed:
// status, metadata of the stored object such as its UID, and what controllers and allocators fill in for some kinds.
func NewManifest(value []byte) (m Manifest, ok bool) {
	obj, ok := Decode(value, Options{Secrets: true})
	m.KubeObject, m.Err = obj.KubeObject, obj.Err
	if !ok || obj.Err != nil {
		return m, ok
	}
	d := json.NewDecoder(bytes.NewReader(obj.JSON))
	d.UseNumber()
	var root map[string]any
	if err := d.Decode(&root); err != nil {
		m.Err = damaged(err)
		return m, true
	}
	m.strip(root)
	m.YAML, m.Err = encode(root)
	return m, true
}

// Reason says why there is no manifest, without what differs from one object to the next.
func (m *Manifest) Reason() string {
	for _, kind := range []error{ErrUnknownKind, ErrTooLarge, ErrDamaged} {
		if errors.Is(m.Err, kind) {
			return kind.Error()
		}
	}
	name, _, _ := strings.Cut(m.Provider, ":") // the rest names the key
	return ErrEncrypted.Error() + " by " + providerOr(name)
}

func encode(root map[string]any) (text []byte, err error) {
	defer guard(&err)
	text, err = json.Marshal(root)
	if err == nil {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return nil, damaged(err)
	}
	return text, nil
}

// serverSet are the fields that a server sets on every object.
var serverSet = []string{
	"status", "metadata.uid", "metadata.resourceVersion", "metadata.generation", "metadata.creationTimestamp",
	"metadata.selfLink",
	"metadata.managedFields", "metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds",
	"metadata.generateName",
	"metadata.annotations.kubectl\x00kubernetes\x00io/last-applied-configuration",
	"metadata.annotations.deployment\x00kubernetes\x00io/revision",
	"spec.template.metadata.creationTimestamp", "spec.jobTemplate.metadata.creationTimestamp",
	"spec.jobTemplate.spec.template.metadata.creationTimestamp",
}

// serverSetOf are the fields that a server sets on single kinds. A zero byte represents a dot within a name.
var serverSetOf = map[string][]string{
	"Service": {"spec.clusterIP", "spec.clusterIPs", "spec.healthCheckNodePort"},
	"Pod":     {"spec.nodeName", "spec.serviceAccount"},
	"Job": {"spec.selector", "spec.template.metadata.labels.controller-uid",
		"spec.template.metadata.labels.batch\x00kubernetes\x00io/controller-uid",
		"metadata.labels.controller-uid", "metadata.labels.batch\x00kubernetes\x00io/controller-uid"},
	"PersistentVolume": {"spec.claimRef.uid", "spec.claimRef.resourceVersion"},
	"PersistentVolumeClaim": {"metadata.annotations.pv\x00kubernetes\x00io/bind-completed",
		"metadata.annotations.pv\x00kubernetes\x00io/bound-by-controller",
		"metadata.annotations.volume\x00kubernetes\x00io/selected-node"},
	"Namespace":      {"spec.finalizers"},
	"ServiceAccount": {"secrets"},
}

func (m *Manifest) strip(root map[string]any) {
	for _, path := range append(slices.Clone(serverSet), serverSetOf[m.Kind]...) {
		if m.Kind == "Service" && strings.HasPrefix(path, "spec.clusterIP") && headless(root) {
			continue
		}
		if m.Kind == "Job" && path == "spec.selector" && at(root, "spec", "manualSelector") == true {
			continue
		}
		if remove(root, strings.Split(path, ".")) {
			m.Stripped = append(m.Stripped, strings.ReplaceAll(path, "\x00", "."))
		}
	}
	if meta, ok := root["metadata"].(map[string]any); ok {
		owners, _ := meta["ownerReferences"].([]any)
		m.Owners = len(owners)
		delete(meta, "ownerReferences")
	}
	if m.Kind == "Pod" {
		m.dropTokens(root)
	}
}

// headless reports whether the user chose clusterIP None for a Service.
func headless(root map[string]any) bool { return at(root, "spec", "clusterIP") == "None" }

func at(v any, path ...string) any {
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// remove deletes a field, and the parent maps that become empty, except spec and metadata.
func remove(m map[string]any, path []string) bool {
	name := strings.ReplaceAll(path[0], "\x00", ".")
	if len(path) == 1 {
		_, had := m[name]
		delete(m, name)
		return had
	}
	inner, ok := m[name].(map[string]any)
	if !ok || !remove(inner, path[1:]) {
		return false
	}
	if len(inner) == 0 && (name == "annotations" || name == "labels") {
		delete(m, name)
	}
	return true
}

// tokenVolume is the prefix of the volumes that the ServiceAccount admission plugin adds to every pod.
const tokenVolume = "kube-api-access-"

// dropTokens removes the token volume and its mounts.
func (m *Manifest) dropTokens(root map[string]any) {
	spec, ok := root["spec"].(map[string]any)
	if !ok {
		return
	}
	if without(spec, "volumes") {
		m.Stripped = append(m.Stripped, "spec.volumes["+tokenVolume+"*]")
	}
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		containers, _ := spec[list].([]any)
		for _, c := range containers {
			if c, ok := c.(map[string]any); ok {
				without(c, "volumeMounts")
			}
		}
	}
	delete(spec, "ephemeralContainers")
}

// without removes the elements of a list whose names are those of token volumes.
func without(m map[string]any, list string) bool {
	all, ok := m[list].([]any)
	if !ok {
		return false
	}
	kept := slices.DeleteFunc(slices.Clone(all), func(v any) bool {
		name, _ := at(v, "name").(string)
		return strings.HasPrefix(name, tokenVolume)
	})
	if len(kept) == len(all) {
		return false
	}
	m[list] = kept
	if len(kept) == 0 {
		delete(m, list)
	}
	return true
}
