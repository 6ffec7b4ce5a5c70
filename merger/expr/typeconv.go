package expr

import (
	"applier/merger/sqlparse"
	"applier/storage/types"
)

// FromStorage returns the type that expressions see a column's type as. Length,
// fields' NOT NULL and names are kept. It reports false for types that
// expressions cannot hold (VARIANT, BLOB, MULTISET, …).
func FromStorage(t types.Type) (Type, bool) {
	switch t.Kind {
	case types.Decimal:
		return decimalOf(t.Precision, t.Scale), true
	case types.Char, types.VarChar:
		r := Type{Kind: String}
		if t.Length != types.MaxLength {
			r.Length, r.Char = t.Length, t.Kind == types.Char
		}
		return r, true
	case types.Time:
		return Type{Kind: Time, Precision: t.Precision}, true
	case types.Array:
		e, ok := FromStorage(*t.Elem)
		return arrayOf(e), ok
	case types.Map:
		k, ok1 := FromStorage(*t.Key)
		v, ok2 := FromStorage(*t.Elem)
		return mapOf(k, v), ok1 && ok2
	case types.Row:
		r := Type{Kind: Struct, Fields: make([]Field, len(t.Fields))}
		for i, f := range t.Fields {
			ft, ok := FromStorage(f.Type)
			if !ok {
				return Type{}, false
			}
			r.Fields[i] = Field{Name: f.Name, Type: ft, NotNull: f.Type.NotNull}
		}
		return r, true
	}
	k, ok := storageKinds[t.Kind]
	return Type{Kind: k}, ok
}

var storageKinds = map[types.Kind]Kind{
	types.Boolean: Boolean, types.TinyInt: TinyInt, types.SmallInt: SmallInt, types.Int: Int, types.BigInt: BigInt,
	types.Float: Float, types.Double: Double, types.Binary: Binary, types.VarBinary: Binary, types.Date: Date,
	types.Timestamp: TimestampNTZ, types.TimestampLTZ: Timestamp,
}

// ToStorage returns the column type that holds values of t, as CREATE TABLE AS
// SELECT needs it. It reports false for NULL's type and intervals.
func (t Type) ToStorage() (types.Type, bool) {
	switch t.Kind {
	case Boolean:
		return types.BooleanType(), true
	case TinyInt:
		return types.TinyIntType(), true
	case SmallInt:
		return types.SmallIntType(), true
	case Int:
		return types.IntType(), true
	case BigInt:
		return types.BigIntType(), true
	case Float:
		return types.FloatType(), true
	case Double:
		return types.DoubleType(), true
	case Decimal:
		return types.DecimalType(t.Precision, t.Scale), true
	case String:
		switch {
		case t.Length > 0 && t.Char:
			return types.CharType(t.Length), true
		case t.Length > 0:
			return types.VarCharType(t.Length), true
		}
		return types.StringType(), true
	case Binary:
		return types.BytesType(), true
	case Date:
		return types.DateType(), true
	case Time:
		return types.TimeType(t.Precision), true
	case Timestamp:
		return types.TimestampLTZType(6), true
	case TimestampNTZ:
		return types.TimestampType(6), true
	}
	return t.nestedToStorage()
}

func (t Type) nestedToStorage() (types.Type, bool) {
	switch t.Kind {
	case Array:
		e, ok := t.Elem.ToStorage()
		return types.ArrayType(e), ok
	case Map:
		k, ok1 := t.Key.ToStorage()
		v, ok2 := t.Elem.ToStorage()
		return types.MapType(k, v), ok1 && ok2
	case Struct:
		fields := make([]types.Field, len(t.Fields))
		for i, f := range t.Fields {
			ft, ok := f.Type.ToStorage()
			if !ok {
				return types.Type{}, false
			}
			ft.NotNull = f.NotNull
			fields[i] = types.Field{ID: i, Name: f.Name, Type: ft}
		}
		return types.RowType(fields...), true
	}
	return types.Type{}, false
}

// astKinds are the types whose name says all.
var astKinds = map[string]Type{
	"BOOLEAN": tBool, "TINYINT": tByte, "SMALLINT": tShort, "INT": tInt, "BIGINT": tLong, "FLOAT": tFloat, "DOUBLE": tDouble,
	"STRING": tString, "BINARY": tBinary, "BYTES": tBinary, "VARBINARY": tBinary, "DATE": tDate, "TIMESTAMP": tStamp,
	"TIMESTAMP_LTZ": tStamp, "TIMESTAMP_NTZ": tNTZ, "VOID": tVoid,
}

// TypeOf resolves the spelling of a type.
func TypeOf(a *sqlparse.Type) (Type, error) {
	switch a.Name {
	case "DECIMAL":
		return decimalType(a)
	case "CHAR", "VARCHAR":
		if len(a.Params) != 1 || a.Params[0] < 1 {
			return Type{}, &Error{Pos: a.Pos, Class: "DATATYPE_MISSING_SIZE", Analysis: true, Message: a.Name + " needs a length, as in " + a.Name + "(10)"}
		}
		return Type{Kind: String, Length: a.Params[0], Char: a.Name == "CHAR"}, nil
	case "TIME":
		t := tTime
		if len(a.Params) == 1 {
			t.Precision = a.Params[0]
		}
		return t, nil
	case "INTERVAL":
		return intervalType(a)
	case "ARRAY":
		e, err := TypeOf(a.Elem)
		return arrayOf(e), err
	case "MAP":
		k, err := TypeOf(a.Key)
		if err != nil {
			return k, err
		}
		v, err := TypeOf(a.Elem)
		return mapOf(k, v), err
	case "STRUCT":
		t := Type{Kind: Struct}
		for _, f := range a.Fields {
			ft, err := TypeOf(f.Type)
			if err != nil {
				return t, err
			}
			t.Fields = append(t.Fields, Field{Name: f.Name, Type: ft, NotNull: f.NotNull})
		}
		return t, nil
	}
	t, ok := astKinds[a.Name]
	if !ok {
		return t, &Error{Pos: a.Pos, Class: sqlparse.ClassDatatype, Analysis: true, Message: "expressions cannot have the type " + a.Name}
	}
	t.Collation = collationName(a.Collation)
	return t, nil
}

func decimalType(a *sqlparse.Type) (Type, error) {
	t := decimalOf(10, 0)
	if len(a.Params) > 0 {
		t = decimalOf(a.Params[0], 0)
	}
	if len(a.Params) > 1 {
		t.Scale = a.Params[1]
	}
	switch {
	case t.Precision > types.MaxPrecision:
		return t, &Error{Pos: a.Pos, Class: "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION", Analysis: true, Message: "a DECIMAL has at most 38 digits"}
	case t.Scale > t.Precision:
		return t, &Error{Pos: a.Pos, Class: "_LEGACY_ERROR_TEMP_1228", Analysis: true, Message: "the scale of a DECIMAL cannot be greater than its precision"}
	case t.Precision < 1:
		return t, &Error{Pos: a.Pos, Class: sqlparse.ClassSyntax, Analysis: true, Message: "a DECIMAL has at least 1 digit"}
	}
	return t, nil
}

func intervalType(a *sqlparse.Type) (Type, error) {
	if a.From == "" {
		return tCal, nil
	}
	to := a.To
	if to == "" {
		to = a.From
	}
	from, end := unitOf(a.From), unitOf(to)
	switch {
	case from < 0 || end < from || (from <= int(UnitMonth)) != (end <= int(UnitMonth)):
		return Type{}, &Error{Pos: a.Pos, Class: sqlparse.ClassDatatype, Analysis: true, Message: "there is no type INTERVAL " + a.From + " TO " + to}
	case from <= int(UnitMonth):
		return Type{Kind: YearMonth, From: uint8(from), To: uint8(end)}, nil
	}
	return Type{Kind: DayTime, From: uint8(from), To: uint8(end)}, nil
}

// unitOf returns the unit of an interval type by its name in upper case, -1 if
// there is none.
func unitOf(name string) int {
	switch name {
	case "YEAR":
		return int(UnitYear)
	case "MONTH":
		return int(UnitMonth)
	case "DAY":
		return int(UnitDay)
	case "HOUR":
		return int(UnitHour)
	case "MINUTE":
		return int(UnitMinute)
	case "SECOND":
		return int(UnitSecond)
	}
	return -1
}
