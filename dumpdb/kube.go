package dumpdb

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// KubeObject is the envelope of a Kubernetes value (k8s.io/apimachinery runtime.Unknown in protobuf, TypeMeta and
// ObjectMeta in JSON, the prefix of an encrypted value).
type KubeObject struct {
	// Encoding is protobuf, json or encrypted.
	Encoding                          string
	APIVersion, Kind, Namespace, Name string
	// Manager is the field manager that wrote last: the program that manages the object, such as
	// kube-controller-manager; "" if the object does not record one.
	Manager string
	// Provider of an encrypted value, such as aescbc:v1:key1 or kms:v2:vault. The value itself cannot be read.
	Provider string
	// Raw is the object inside the envelope.
	Raw []byte
}

var (
	kubeProto     = []byte("k8s\x00")
	kubeEncrypted = []byte("k8s:enc:")

	unknownWires  = []int8{skipField, 2, 2, 2, 2}
	typeMetaWires = []int8{skipField, 2, 2}
	objectWires   = []int8{skipField, 2}
	// Of ObjectMeta: name, namespace, managedFields.
	metadataWires = []int8{skipField, 2, skipField, 2, skipField, skipField, skipField, skipField, skipField, skipField,
		skipField, skipField, skipField,
		skipField, skipField, skipField, skipField, 2}
	managedWires = []int8{skipField, 2, skipField, skipField, 2} // of ManagedFieldsEntry: manager, time
	timeWires    = []int8{skipField, 0}                          // of Time: seconds
)

// ParseKube reads the envelope of a value; ok is false if the value is not a Kubernetes object.
func ParseKube(value []byte) (o KubeObject, ok bool) {
	switch {
	case bytes.HasPrefix(value, kubeProto):
		return parseKubeProto(value[len(kubeProto):])
	case bytes.HasPrefix(value, kubeEncrypted):
		return parseKubeEncrypted(value[len(kubeEncrypted):])
	case len(value) > 0 && value[0] == '{':
		return parseKubeJSON(value)
	}
	return o, false
}

func parseKubeProto(b []byte) (KubeObject, bool) {
	o := KubeObject{Encoding: "protobuf"}
	err := eachField(b, unknownWires, func(f *field) error {
		switch f.Num {
		case 1:
			return eachField(f.B, typeMetaWires, func(f *field) error {
				if f.Num == 1 {
					o.APIVersion = string(f.B)
				} else {
					o.Kind = string(f.B)
				}
				return nil
			})
		case 2:
			o.Raw = f.B
		}
		return nil
	})
	if err != nil {
		return o, false
	}
	o.metadata()
	return o, o.Kind != ""
}

// metadata reads field 1 of the object, which is ObjectMeta in every stored built-in kind. If it does not decode as
// such, name and namespace stay empty.
func (o *KubeObject) metadata() {
	var name, namespace string
	var last writer
	err := eachField(o.Raw, objectWires, func(f *field) error {
		return eachField(f.B, metadataWires, func(f *field) error {
			switch f.Num {
			case 1:
				name = string(f.B)
			case 3:
				namespace = string(f.B)
			default:
				last.newer(managedProto(f.B))
			}
			return nil
		})
	})
	if err == nil {
		o.Name, o.Namespace, o.Manager = name, namespace, last.manager
	}
}

// writer is a program that wrote fields of an object, and when, in seconds since 1970.
type writer struct {
	manager string
	at      int64
}

// newer keeps the writer that wrote later; of several at the same time the last in the list.
func (w *writer) newer(x writer) {
	if x.manager != "" && (w.manager == "" || x.at >= w.at) {
		*w = x
	}
}

// secondsOf reads the time of an entry in JSON. An invalid time counts as the oldest.
func secondsOf(v any) int64 {
	s, _ := v.(string)
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0
	}
	return t.Unix()
}

// managedProto reads a ManagedFieldsEntry. One that does not decode has no manager.
func managedProto(b []byte) writer {
	var w writer
	err := eachField(b, managedWires, func(f *field) error {
		if f.Num == 1 {
			w.manager = string(f.B)
			return nil
		}
		return eachField(f.B, timeWires, func(f *field) error {
			w.at = int64(f.V) // its bits: times before 1970 are negative
			return nil
		})
	})
	if err != nil || len(w.manager) > maxManager {
		return writer{}
	}
	return w
}

// maxManager is the longest manager name that an apiserver accepts.
const maxManager = 128

func parseKubeJSON(b []byte) (KubeObject, bool) {
	var j struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
			Managed   []struct {
				Manager string `json:"manager"`
				Time    any    `json:"time"`
			} `json:"managedFields"`
		} `json:"metadata"`
	}
	if json.Unmarshal(b, &j) != nil || j.Kind == "" || j.APIVersion == "" {
		return KubeObject{}, false
	}
	var last writer
	for _, m := range j.Metadata.Managed {
		if len(m.Manager) <= maxManager {
			last.newer(writer{m.Manager, secondsOf(m.Time)})
		}
	}
	return KubeObject{Encoding: "json", APIVersion: j.APIVersion, Kind: j.Kind, Namespace: j.Metadata.Namespace,
		Name: j.Metadata.Name, Manager: last.manager, Raw: b}, true
}

// parseKubeEncrypted names the provider: k8s:enc:PROVIDER:VERSION:KEYNAME:ciphertext.
func parseKubeEncrypted(b []byte) (KubeObject, bool) {
	parts := bytes.SplitN(b[:min(len(b), 256)], []byte(":"), 4)
	if len(parts) < 4 {
		return KubeObject{Encoding: "encrypted"}, true
	}
	names := []string{string(parts[0]), string(parts[1]), string(parts[2])}
	return KubeObject{Encoding: "encrypted", Provider: strings.Join(names, ":")}, true
}
