package expr

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/google/uuid"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// bareFunctions are the functions that need no parentheses.
var bareFunctions = map[string]func(c *compiler, pos sqlparse.Pos) *node{
	"current_date": func(c *compiler, pos sqlparse.Pos) *node {
		return newConst(pos, tDate, types.IntDatum(types.FloorDiv(toLocal(c.env.nowMicros(), c.env.zone()), microDay)))
	},
	"current_timestamp": func(c *compiler, pos sqlparse.Pos) *node {
		return newConst(pos, tStamp, types.IntDatum(c.env.nowMicros()))
	},
	"localtimestamp": func(c *compiler, pos sqlparse.Pos) *node {
		return newConst(pos, tNTZ, types.IntDatum(toLocal(c.env.nowMicros(), c.env.zone())))
	},
	"current_time": func(c *compiler, pos sqlparse.Pos) *node {
		return newConst(pos, tTime, types.IntDatum(clockOf(tStamp, c.env.nowMicros(), c.env)))
	},
	"current_user": func(c *compiler, pos sqlparse.Pos) *node { return newConst(pos, tString, textDatum(c.named().User)) },
	"session_user": func(c *compiler, pos sqlparse.Pos) *node { return newConst(pos, tString, textDatum(c.named().User)) },
	"user":         func(c *compiler, pos sqlparse.Pos) *node { return newConst(pos, tString, textDatum(c.named().User)) },
	"current_catalog": func(c *compiler, pos sqlparse.Pos) *node {
		return newConst(pos, tString, textDatum(c.named().Catalog))
	},
	"current_database": func(c *compiler, pos sqlparse.Pos) *node {
		return newConst(pos, tString, textDatum(c.named().Database))
	},
	"current_schema": func(c *compiler, pos sqlparse.Pos) *node {
		return newConst(pos, tString, textDatum(c.named().Database))
	},
	"current_timezone": func(c *compiler, pos sqlparse.Pos) *node {
		return newConst(pos, tString, textDatum(c.env.zone().String()))
	},
}

// named returns the environment, an empty one if there is none.
func (c *compiler) named() *Env {
	if c.env == nil {
		return &Env{}
	}
	return c.env
}

// bare is a bare function with its parentheses.
func bare(name string) function {
	first, _, _ := strings.Cut(name, " ")
	return function{name, 0, 0, func(c *compiler, k *call) *node { return bareFunctions[first](c, k.pos) }}
}

func systemFunctions() []function {
	return []function{
		bare("current_timestamp now"), bare("localtimestamp"), bare("current_time"), bare("current_user user session_user"),
		bare("current_catalog"), bare("current_database current_schema"), bare("current_timezone"),
		{"typeof", 1, 1, func(_ *compiler, k *call) *node { return newConst(k.pos, tString, textDatum(k.args[0].typ.String())) }},
		{"version", 0, 0, func(_ *compiler, k *call) *node { return newConst(k.pos, tString, textDatum("4.1.2 applier")) }},
		{"uuid", 0, 1, func(_ *compiler, k *call) *node {
			return &node{typ: tString, pos: k.pos, eval: func(*frame) (types.Datum, error) {
				id, err := uuid.NewRandom()
				if err != nil {
					return types.Null, at(k.pos, fault("INTERNAL_ERROR", "making a UUID: %v", err))
				}
				return textDatum(id.String()), nil
			}}
		}},
		{"rand random", 0, 1, func(c *compiler, k *call) *node { return c.random(k, (*rand.Rand).Float64) }},
		{"randn", 0, 1, func(c *compiler, k *call) *node { return c.random(k, (*rand.Rand).NormFloat64) }},
		{"raise_error", 1, 1, func(c *compiler, k *call) *node {
			n := strict(tVoid, k.pos, c.wantAll(k, tString), func(_ *Env, a []types.Datum) (types.Datum, error) {
				return types.Null, fault("USER_RAISED_EXCEPTION", "%s", a[0].B)
			})
			n.foldable = false
			return n
		}},
		{"assert_true", 1, 2, (*compiler).assertTrue},
	}
}

// random is rand and randn; a seed makes the numbers the same in each run, though
// not Spark's.
func (c *compiler) random(k *call, f func(*rand.Rand) float64) *node {
	r := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	if len(k.args) == 1 {
		seed := c.want(k.args[0], tLong, k.name, 0).fold(c.env)
		if !seed.constant {
			return c.fail(k.pos, classNonFoldable, "the seed of %s must be a constant", k.name)
		}
		r = rand.New(rand.NewPCG(uint64(seed.value.I), 0))
	}
	return &node{typ: tDouble, pos: k.pos, eval: func(*frame) (types.Datum, error) { return types.FloatDatum(f(r)), nil }}
}

// uniform is a random number between two constants, of their type.
func (c *compiler) uniform(k *call) *node {
	seed := rand.Uint64()
	if len(k.args) == 3 {
		s := c.want(k.args[2], tLong, k.name, 2).fold(c.env)
		if !s.constant {
			return c.fail(k.pos, classNonFoldable, "the seed of %s must be a constant", k.name)
		}
		seed = uint64(s.value.I)
		k.args = k.args[:2]
	}
	t, ok := c.coerceAll(k.args, wider)
	if !ok || !t.numeric() {
		return c.mismatch(k.pos, k.name, 0, "a number", t)
	}
	r := rand.New(rand.NewPCG(seed, 0))
	n := strict(t, k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
		lo, _ := ratOf(t, a[0]).Float64()
		hi, _ := ratOf(t, a[1]).Float64()
		v := types.FloatDatum(lo + r.Float64()*(hi-lo))
		if t.integral() {
			return types.IntDatum(int64(math.Floor(v.F))), nil
		}
		if t.Kind == Decimal {
			return floatToDecimal(v.F, t)
		}
		return v, nil
	})
	n.foldable = false
	return n
}

// assertTrue fails unless its argument is true.
func (c *compiler) assertTrue(k *call) *node {
	k.args[0] = c.want(k.args[0], tBool, k.name, 0)
	if len(k.args) == 2 {
		k.args[1] = c.want(k.args[1], tString, k.name, 1)
	}
	n := lenient(tVoid, k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
		if !a[0].Null && a[0].I != 0 {
			return types.Null, nil
		}
		text := "the assertion does not hold"
		if len(a) == 2 {
			text = string(a[1].B)
		}
		return types.Null, fault("USER_RAISED_EXCEPTION", "%s", text)
	})
	n.foldable = false
	return n
}

// castFunctions are types as functions: int('5').
func castFunctions() []function {
	to := func(name string, t Type) function {
		return function{name, 1, 1, func(c *compiler, k *call) *node { return c.castNode(k.pos, k.args[0], t, false) }}
	}
	return []function{
		to("boolean", tBool), to("tinyint", tByte), to("smallint", tShort), to("int", tInt), to("bigint", tLong), to("float", tFloat),
		to("double", tDouble), to("decimal", decimalOf(10, 0)), to("string", tString), to("binary", tBinary), to("date", tDate),
		to("timestamp", tStamp),
	}
}
