package evidence

import "github.com/etcd-medic/etcd-medic/dumpdb"

// Object names an object of Kubernetes. It holds no part of the object's content.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Manager is the field manager that wrote last, such as kube-controller-manager.
	Manager string `json:"manager,omitempty"`
}

// ObjectOf returns the name of what was read from a value, nil for a value that names no kind (not of Kubernetes, or
// encrypted).
func ObjectOf(k *dumpdb.KubeObject) *Object {
	if k.Kind == "" {
		return nil
	}
	return &Object{Kind: k.Kind, Namespace: k.Namespace, Name: k.Name, Manager: k.Manager}
}

// String is the object as people write it: Pod default/web-0, written by kubelet.
func (o *Object) String() string {
	s := o.Kind
	if o.Name != "" {
		s += " "
		if o.Namespace != "" {
			s += o.Namespace + "/"
		}
		s += o.Name
	}
	if o.Manager != "" {
		s += ", written by " + o.Manager
	}
	return s
}
