module github.com/etcd-medic/etcd-medic/tools/walls

go 1.26.0
