package dumpdb

// alarmWires: memberID and alarm are varints (etcdserverpb.AlarmMember). The message is the key; the value is empty.
var alarmWires = []int8{skipField, 0, 0}

// Alarms reads bucket alarm.
func (db *DB) Alarms() ([]Alarm, error) {
	var out []Alarm
	err := db.eachRow("alarm", func(row Row) error {
		a, err := decodeAlarm(row)
		if err == nil {
			out = append(out, a)
		}
		return err
	})
	return out, err
}

func decodeAlarm(row Row) (Alarm, error) {
	a := Alarm{Place: row.Place}
	err := eachField(row.Key, alarmWires, func(f *field) error {
		if f.Num == 1 {
			a.MemberID = ID(f.V)
		} else {
			a.Type = int32(f.V)
		}
		return nil
	})
	return a, err
}
