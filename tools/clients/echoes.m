% SPDX-License-Identifier: MIT
% Prints sample, range, its sigma and SNR of the strongest echo of each result, until the run ends.
% usage: octave -qf echoes.m [ENDPOINT [STREAM]]; pnradar-listen must be on the PATH.
arguments = argv();
endpoint = "tcp://127.0.0.1:5555";
stream = "pnradar";
if numel(arguments) > 0
  endpoint = arguments{1};
end
if numel(arguments) > 1
  stream = arguments{2};
end
listener = popen(sprintf("pnradar-listen --format json --stream '%s' '%s'", stream, endpoint), "r");
while ischar(line = fgetl(listener))
  result = jsondecode(line);
  if ! isempty(result.echoes)
    echo_ = result.echoes(1);  % the strongest is the first
    printf("%s %.6g %.3g %.3g\n", result.sample, echo_.range_m, echo_.range_sigma_m, echo_.snr_db);
  end
end
pclose(listener);
