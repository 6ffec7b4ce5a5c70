// Prints what this Java makes of floating-point values: floats17.txt is Java 17's. No library is needed.
public class JavaFloats { static void d(double d){System.out.println("double\t"+Long.toHexString(Double.doubleToRawLongBits(d))+"\t"+d);} static void f(float f){System.out.println("float\t"+Integer.toHexString(Float.floatToRawIntBits(f))+"\t"+f);}
 public static void main(String[] a){
  for(double x:new double[]{0,-0.0,1,-1,0.1,0.001,0.00099999,1e7,9999999.9,12345678,1e20,1e21,1e22,1e23,2e23,8.41E21,2.2E-322,Double.MIN_VALUE,2e-323,1e-322,Double.MIN_NORMAL,Double.MAX_VALUE,2.9799999999999996E25,3.193344495255552E293,3.308722450212111E-24,2e-3,5e-324*3,1.0/3,123456789012345680.0,9007199254740993.0,4611686018427387904.0,9223372036854775807.0,1.1,100,1e-5,1.5E300,4.35,2.0e-44,Double.NaN,Double.POSITIVE_INFINITY,Double.NEGATIVE_INFINITY,999999999999999.9,Math.PI*1e-100}) d(x);
  for(float x:new float[]{0,1,-1.5f,0.1f,3.4028235E38f,1.4E-45f,1.17549435E-38f,9.350387E7f,4.308192E12f,5.7286327E25f,5.0190607E25f,1.0E10f,3.3554432E7f,16777216f,2e-3f,8.41E21f,1.1f,1.0f/3,9.6117406E24f,8.6327190E17f}) f(x);
 }}
