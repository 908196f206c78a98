package evidence

import "github.com/etcd-medic/etcd-medic/dumpdb"

// Object names a Kubernetes object. It contains no part of the object's content.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Manager is the field manager that wrote last, such as kube-controller-manager.
	Manager string `json:"manager,omitempty"`
}

// ObjectOf returns the name of an object, nil for a value without a kind (not a Kubernetes object, or encrypted).
func ObjectOf(k *dumpdb.KubeObject) *Object {
	if k.Kind == "" {
		return nil
	}
	return &Object{Kind: k.Kind, Namespace: k.Namespace, Name: k.Name, Manager: k.Manager}
}

// String returns the object in the usual form, such as Pod default/web-0, written by kubelet.
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
